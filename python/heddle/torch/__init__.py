"""torch.compile(model, backend="heddle").

    import torch
    model = torch.compile(model, backend="heddle", options={"threads": 4})

PyTorch finds the backend by its entry point where heddle is installed; from elsewhere,
`import heddle.torch` registers it. options are those of heddle.Session.
"""
try:
    from torch._dynamo.backends.registry import _BACKENDS, register_backend
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(f"heddle.torch needs PyTorch 2 ({missing}): pip install torch",
                              name=missing.name) from None

from .backend import backend
from .explanation import Explained, explain

__all__ = ["Explained", "backend", "explain"]

if "heddle" not in _BACKENDS:  # else PyTorch has found the entry point, and registers what it gives
    register_backend(backend, name="heddle")
