"""Columns of a profile by their form."""

from __future__ import annotations

from typing import Any, Protocol, cast, runtime_checkable

import numpy.typing as npt

from fastprof.model.columns import Column, Values
from fastprof.model.metadata import About


class Columns(Protocol):
    """Columns by name: a Profile has those of kernels, `CpuEvents` those of CPU events."""

    @property
    def about(self) -> About: ...
    @property
    def names(self) -> list[str]: ...
    def column(self, name: str) -> Column: ...
    def __len__(self) -> int: ...


@runtime_checkable
class OwnKeys(Protocol):
    """Columns of rows that stand for several kernels, such as those of `analysis.cells`."""

    def own_key(self, name: str) -> Values | None:
        """The values of a grouping key that columns cannot tell; None if they can."""


def numbers(source: Columns, name: str) -> npt.NDArray[Any]:
    """A column of integers; -1 is unknown."""
    return cast("npt.NDArray[Any]", source.column(name).values)


def texts(source: Columns, name: str) -> Values:
    """A column of texts."""
    return cast(Values, source.column(name))
