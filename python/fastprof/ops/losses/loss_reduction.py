"""The argument `reduction` of a loss: additions and output size."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel

# Python calls record "mean"; ATen calls record its number: 0 none, 1 mean, 2 sum.
Reduction: TypeAlias = str | int | Unknown
# The legacy argument reduce=False of torch 0.4 is reduction="none".
Reduce: TypeAlias = bool | None

_KEPT = ("none", 0)
_ADDED = ("mean", "sum", "batchmean", 1, 2)


class Reduced(NamedTuple):
    """The reduction of the elementwise losses.

    `added` is the FLOPs per element: 1 if reduced, else 0. `exact` is False if the reduction is not
    recorded; torch's default, a mean, is then assumed.
    """

    added: int
    exact: bool

    @classmethod
    def read(cls, reduction: Reduction, reduce: Reduce = None) -> Reduced:
        """Read the arguments of a call.

        Raises
        ------
        CannotModel
            When the reduction is invalid.
        """
        if isinstance(reduction, Unknown):
            return cls(1, False)
        if reduction not in (*_KEPT, *_ADDED):
            raise CannotModel(f"expected reduction none, mean or sum, found {reduction!r}")
        return cls(0 if reduction in _KEPT or reduce is False else 1, True)

    def loss(self, shape: tuple[int, ...], dtype: str | None) -> Tensor:
        """The loss that is written, and whose gradient is read."""
        return Tensor(() if self.added else shape, dtype)
