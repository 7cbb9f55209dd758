"""Where every GPU nanosecond of a PyTorch run went.

>>> import fastprof
>>> profile = fastprof.open("net.sqlite")   # doctest: +SKIP
>>> profile.kernels["sil"].sum()            # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fastprof.errors import (
    AnnotateError,
    BadInputError,
    FastprofError,
    InternalError,
    MissingDependencyError,
    OpError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from fastprof.annotate.layers import annotate_layers, layer
    from fastprof.annotate.session import init, uninit
    from fastprof.annotate.wrap import wrap
    from fastprof.call import Tensor, Unknown
    from fastprof.load import open
    from fastprof.ops import CannotModel, Cost, op
    from fastprof.profile import Profile
    from fastprof.ranks.batch import batch
    from fastprof.ranks.result import Batch

__all__ = [
    "AnnotateError",
    "BadInputError",
    "Batch",
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
    "annotate_layers",
    "batch",
    "init",
    "layer",
    "op",
    "open",
    "uninit",
    "wrap",
]
__version__ = "0.1.0"


_HOMES = {
    "Batch": "fastprof.ranks.result",
    "CannotModel": "fastprof.ops",
    "Cost": "fastprof.ops",
    "Profile": "fastprof.profile",
    "Tensor": "fastprof.call",
    "Unknown": "fastprof.call",
    "annotate_layers": "fastprof.annotate.layers",
    "batch": "fastprof.ranks.batch",
    "init": "fastprof.annotate.session",
    "layer": "fastprof.annotate.layers",
    "op": "fastprof.ops",
    "open": "fastprof.load",
    "uninit": "fastprof.annotate.session",
    "wrap": "fastprof.annotate.wrap",
}


def __getattr__(name: str) -> object:
    """Import numpy and the compiled core only when something is read: `--help` needs neither."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
