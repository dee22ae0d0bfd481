"""JAX's plug-in of heddle: JAX finds it here and calls initialize()."""
from __future__ import annotations

import logging
import os
import pathlib
from typing import Any

_LIBRARY = "libheddle_pjrt.so"
_log = logging.getLogger(__name__)


def _library() -> pathlib.Path | None:
    """The plug-in's library: beside the package heddle in a wheel, else beside this file."""
    here = pathlib.Path(__file__).parent
    named = os.environ.get("HEDDLE_PJRT_LIBRARY")
    places = [pathlib.Path(named)] if named else [
        here.parent.parent / "heddle" / _LIBRARY, here / _LIBRARY]
    return next((place for place in places if place.exists()), None)


def _options() -> dict[str, str]:
    """Options of heddle for every program: HEDDLE_JAX_OPTIONS="level=O1 threads=2"."""
    words = os.environ.get("HEDDLE_JAX_OPTIONS", "").split()
    parts = (word.partition("=") for word in words)
    return {name: value for name, _, value in parts}


def initialize() -> None:
    """Registers the platform "heddle". Never raises: `import jax` has to work everywhere."""
    try:
        library = _library()
        if library is None:
            _log.debug("%s is not there", _LIBRARY)
            return
        from jax._src import config, xla_bridge

        # Below the other platforms: programs ask for it, by JAX_PLATFORMS or by its devices.
        xla_bridge.register_plugin("heddle", priority=-100, library_path=str(library),
                                   options=_options)
        from . import _dlpack, _lowering

        _lowering.register(str(library))
        _dlpack.register()
        # Callbacks put their arguments on a device of JAX's own platform for the host.
        if config.jax_platforms.value == "heddle":
            settings: Any = config  # of which not all has types
            settings.update("jax_platforms", "heddle,cpu")
    except ModuleNotFoundError as missing:
        _log.warning("heddle's plug-in for JAX is not used: %s", missing)
    except Exception:  # pylint: disable=broad-except
        _log.warning("heddle's plug-in for JAX is not used", exc_info=True)
