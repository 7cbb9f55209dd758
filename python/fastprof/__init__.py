"""Where every GPU nanosecond of a PyTorch run went.

>>> import fastprof
>>> profile = fastprof.open("net.sqlite")   # doctest: +SKIP
>>> profile.kernels["sil"].sum()            # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastprof.errors import (
    BadInputError,
    FastprofError,
    InternalError,
    MissingDependencyError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from fastprof.load import open
    from fastprof.profile import Profile

__all__ = [
    "BadInputError",
    "FastprofError",
    "InternalError",
    "MissingDependencyError",
    "Profile",
    "UnknownColumnError",
    "open",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import numpy and the compiled core only when something is read: `--help` needs neither."""
    if name == "open":
        from fastprof.load import open

        return open
    if name == "Profile":
        from fastprof.profile import Profile

        return Profile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
