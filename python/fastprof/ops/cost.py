"""The result of a cost model: the work of one call, split by the kernels that do it."""

from __future__ import annotations

from dataclasses import replace

from fastprof._system.classes import dataclass


class CannotModel(ValueError):
    """A formula cannot determine the cost of a call. Not raised outside `fastprof.ops`."""


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs (a fused multiply-add counts as two) and bytes read from and written to memory.

    None is unknown and prints as `na`. `exact` is False for an estimate, where the cost depends on
    values that a capture does not record.
    """

    flops: int | None
    bytes: int | None
    exact: bool = True

    def __add__(self, other: Cost) -> Cost:
        """Sum of two costs. A field unknown in one is unknown in the sum."""
        return Cost(
            add_known(self.flops, other.flops),
            add_known(self.bytes, other.bytes),
            self.exact and other.exact,
        )


Answer = tuple[Cost, str]  # of a formula: the cost, and the params to print


def add_known(*values: int | None) -> int | None:
    """Sum of the values; None if any is None."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a call's work.

    Kernels of the kinds in `kernels` do it; if empty, any kernel. If several parts list a kernel's
    kind, the kernel belongs to the part with the same `layout`, else to the first of them.

    Parameters
    ----------
    role : str
        "main", "bias", "dgrad" (gradient of the left operand) or "wgrad" (of the right one).
    cost : Cost
        Cost of this part, shared by its kernels.
    params : str
        The `params` column for its kernels.
    op : str, optional
        The `op` column for its kernels, if different from the call's op.
    kernels : frozenset of str
        Kernel kinds (`fastprof.ops.kernels`) that do this part.
    layout : str, optional
        Operand layout ("nn", "nt", "tn") in the names of its kernels.
    optional : bool
        The part counts only if the call launches a kernel that belongs to it.
    no_tensor_cores : str
        Why its kernels may not use tensor cores (`fastprof.ops.tensor_cores`); "" if tensor cores
        do not apply to it.
    """

    role: str
    cost: Cost
    params: str
    op: str | None = None
    kernels: frozenset[str] = frozenset()
    layout: str | None = None
    optional: bool = False
    no_tensor_cores: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """The parts of a call in one direction."""

    parts: tuple[Part, ...]

    @property
    def cost(self) -> Cost:
        """Sum of all parts, including optional ones."""
        total = Cost(0, 0)
        for part in self.parts:
            total += part.cost
        return total

    def estimated(self, exact: bool = False) -> Work:
        """The same work, its cost an estimate unless it is exact."""
        parts = (replace(part, cost=replace(part.cost, exact=exact)) for part in self.parts)
        return Work(tuple(parts))
