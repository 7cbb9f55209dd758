"""The argument `reduction` of a loss to what it adds up and writes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel

__all__ = ["Reduce", "Reduced", "Reduction"]

# Python calls write "mean"; ATen calls write its number: 0 none, 1 mean, 2 sum.
Reduction: TypeAlias = str | int | Unknown
# The old argument reduce=False of torch 0.4 is reduction="none".
Reduce: TypeAlias = bool | None

_KEPT = ("none", 0)
_ADDED = ("mean", "sum", "batchmean", 1, 2)


class Reduced(NamedTuple):
    """What becomes of the losses of single elements.

    `added` is 1 where they are added up, one FLOP each, and 0 where they are kept. `exact` is False
    where a capture does not say: then they are assumed to be added up, torch's default.
    """

    added: int
    exact: bool

    @classmethod
    def read(cls, reduction: Reduction, reduce: Reduce = None) -> Reduced:
        """Read the arguments of a call.

        Raises
        ------
        CannotModel
            When it is no reduction.
        """
        if isinstance(reduction, Unknown):
            return cls(1, False)
        if reduction not in (*_KEPT, *_ADDED):
            raise CannotModel(f"reduction {reduction!r} is none of none, mean, sum")
        return cls(0 if reduction in _KEPT or reduce is False else 1, True)

    def loss(self, shape: tuple[int, ...], dtype: str | None) -> Tensor:
        """The loss that is written, and whose gradient is read."""
        return Tensor(() if self.added else shape, dtype)
