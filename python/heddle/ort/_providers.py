"""Execution providers: heddle's devices by ONNX Runtime's names."""
from __future__ import annotations

import ctypes
import functools
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    # Names, or names with options.
    Providers = Sequence[str | tuple[str, Mapping[str, Any]]]

_DEVICES = {"CUDAExecutionProvider": "cuda", "CPUExecutionProvider": "cpu"}


@functools.lru_cache(maxsize=None)
def _has_cuda() -> bool:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return bool(cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
                and count.value > 0)


def get_all_providers() -> list[str]:
    """What heddle knows, best first.

    >>> get_all_providers()
    ['CUDAExecutionProvider', 'CPUExecutionProvider']
    """
    return list(_DEVICES)


def get_available_providers() -> list[str]:
    """Those of this machine, best first.

    >>> get_available_providers()[-1]
    'CPUExecutionProvider'
    """
    return [name for name in _DEVICES if name != "CUDAExecutionProvider" or _has_cuda()]


def get_device() -> str:
    """'GPU' where there is one of NVIDIA's.

    >>> get_device() in ("CPU", "GPU")
    True
    """
    return "GPU" if _has_cuda() else "CPU"


def resolve(providers: Providers | None,
            provider_options: Sequence[Mapping[str, Any]] | None = None
            ) -> list[tuple[str, dict[str, str], str]]:
    """[(name, options, device)], best first. Names that are not available are left out with a
    warning, as ONNX Runtime does; the CPU is always the last."""
    available = get_available_providers()
    chosen = []
    wanted = list(providers if providers is not None else ["CPUExecutionProvider"])
    for i, provider in enumerate(wanted):
        name, options = provider if isinstance(provider, tuple) else (provider, None)
        if options is None:
            options = (provider_options or [])[i] if i < len(provider_options or []) else {}
        if name not in available:
            warnings.warn(f"heddle.ort: specified provider '{name}' is not in available provider "
                          f"names. Available providers: '{', '.join(available)}'", stacklevel=3)
            continue
        device = _DEVICES[name]
        if device == "cuda" and "device_id" in options:
            device += f":{options['device_id']}"
        chosen.append((name, {key: str(value) for key, value in options.items()}, device))
    if all(name != "CPUExecutionProvider" for name, _, _ in chosen):
        chosen.append(("CPUExecutionProvider", {}, "cpu"))
    return chosen
