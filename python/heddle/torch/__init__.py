"""torch.compile(model, backend="heddle").

    import torch
    model = torch.compile(model, backend="heddle", options={"threads": 4})

PyTorch finds the backend by its entry point where heddle is installed; from elsewhere,
`import heddle.torch` registers it. options are those of heddle.Session.
"""
from torch._dynamo.backends.registry import _COMPILER_FNS, register_backend

from .backend import backend
from .explanation import Explained, explain

__all__ = ["Explained", "backend", "explain"]

if "heddle" not in _COMPILER_FNS:  # its entry point may have been here before
    register_backend(backend, name="heddle")
