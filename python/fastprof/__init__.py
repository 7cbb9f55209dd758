"""Where every GPU nanosecond of a PyTorch run went.

>>> import fastprof
>>> profile = fastprof.open("net.sqlite")   # doctest: +SKIP
>>> profile.kernels["sil"].sum()            # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fastprof.errors import (
    BadInputError,
    FastprofError,
    InternalError,
    MissingDependencyError,
    OpError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from fastprof.call import Tensor, Unknown
    from fastprof.load import open
    from fastprof.ops import CannotModel, Cost, op
    from fastprof.profile import Profile

__all__ = [
    "BadInputError",
    "CannotModel",
    "Cost",
    "FastprofError",
    "InternalError",
    "MissingDependencyError",
    "OpError",
    "Profile",
    "Tensor",
    "Unknown",
    "UnknownColumnError",
    "op",
    "open",
]
__version__ = "0.1.0"


_HOMES = {
    "CannotModel": "fastprof.ops",
    "Cost": "fastprof.ops",
    "Profile": "fastprof.profile",
    "Tensor": "fastprof.call",
    "Unknown": "fastprof.call",
    "op": "fastprof.ops",
    "open": "fastprof.load",
}


def __getattr__(name: str) -> object:
    """Import numpy and the compiled core only when something is read: `--help` needs neither."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
