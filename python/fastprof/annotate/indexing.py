"""Ranges around `x[i]` and `x[i] = y`, by replacing type slots.

An attribute `Tensor.__getitem__` set from Python would make Tensor a sequence type.
"""

from __future__ import annotations

from typing import Final

from torch import Tensor
from torch._C import TensorBase

from fastprof._core._hooks import Wrapped
from fastprof._core._slots import annotate_indexing, restore_indexing
from fastprof.annotate.wrap import patches


def install() -> None:
    """Annotate indexing until the patches are reverted; skip it if the type slots differ."""
    patches.apply(_Indexing())


class _Indexing:
    def apply(self) -> None:
        annotate_indexing(TensorBase, _GETTING, _SETTING)

    reapply = apply

    def revert(self) -> None:
        restore_indexing(TensorBase)

    def detach(self) -> None:
        pass


def _described(name: str) -> Wrapped:
    return Wrapped(getattr(Tensor, name), "Tensor", name, f"torch:Tensor.{name}")


_GETTING: Final = _described("__getitem__")
_SETTING: Final = _described("__setitem__")
