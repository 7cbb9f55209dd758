"""What a model answers: the work of one call, in parts that particular kernels do."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CannotModel", "Cost", "Part", "Work"]


class CannotModel(ValueError):
    """The arguments of a call are not what its model needs. Never leaves `fastprof.ops`."""


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs (a fused multiply-add is two) and bytes moved to and from memory.

    None is unknown, which prints `na`; 0 is known to be nothing. `exact` is False where a model
    gives an estimate that depends on values (not shapes) which a capture does not hold.
    """

    flops: int | None
    bytes: int | None
    exact: bool = True

    def __add__(self, other: Cost) -> Cost:
        """Sum of two costs. What is unknown in one is unknown in the sum."""
        return Cost(
            add_known(self.flops, other.flops),
            add_known(self.bytes, other.bytes),
            self.exact and other.exact,
        )


def add_known(*values: int | None) -> int | None:
    """Sum of the values, None as soon as one of them is None."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a call's work.

    Which kernels do it: those of a kind in `kernels`, any if that is empty. Where several parts
    of a work name the kind, a kernel goes to the part with its own `layout`; a kernel that no
    part's layout names, or that has none, goes to the first of those parts.

    Parameters
    ----------
    role : str
        "main", "bias", "dgrad" (gradient of the left operand) or "wgrad" (of the right one).
    cost : Cost
        Cost of this part alone; its kernels share it.
    params : str
        The params cell of its kernels' rows.
    op : str, optional
        The op cell of its kernels' rows, when it is not the call's op.
    kernels : frozenset of str
        Kinds of `fastprof.ops.kernels` that do this part.
    layout : str, optional
        Operand layout ("nn", "nt", "tn") by which a kernel's name tells this part.
    optional : bool
        The part exists only where a kernel recognised as its own does.
    no_tensor_cores : str
        Why its kernels may have run without tensor cores (`fastprof.ops.tensor_cores`), "" when
        no kernel of it could use them.
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
        """Sum of the parts, with those that exist only where a kernel does them."""
        total = Cost(0, 0)
        for part in self.parts:
            total += part.cost
        return total
