"""What a rule of kernels found, before it becomes a row of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastprof.analysis.advice.calls import CallGroup, Part
from fastprof.model.quantity import quantity

__all__ = ["Found", "by_time", "calls_text", "ms", "share_text", "spread"]


@dataclass(frozen=True)
class Found:
    """A finding about calls.

    Parameters
    ----------
    what : one sentence
    groups : the calls concerned, the most important first
    saved : upper bound of the saving a step, ns, by `Part.id`; at most the part's time
    evidence : numbers and names, JSON values
    remedy : one or two changes, the simplest first
    confidence : "high", "medium" or "low"
    why : the reason for the confidence
    idle_ns : the saving a step of idle time, ns
    """

    what: str
    groups: Sequence[CallGroup]
    saved: dict[int, float]
    evidence: dict[str, Any]
    remedy: tuple[str, ...]
    confidence: str
    why: str
    idle_ns: float = field(default=0.0)

    @property
    def saving_ns(self) -> float:
        """The saving a step."""
        return sum(self.saved.values()) + self.idle_ns


def by_time(groups: Iterable[CallGroup]) -> list[CallGroup]:
    """The groups with the most time first."""
    return sorted(groups, key=lambda each: -each.ns)


def ms(ns: float) -> str:
    """A time as text."""
    return quantity(ns, "ns")


def calls_text(n: float) -> str:
    """`24 x`, or `2.5 x` for a mean."""
    return f"{n:.3g} x" if n < 100 else f"{n:.0f} x"


def share_text(part: float, all_: float) -> str:
    """A share in percent."""
    return f"{part / all_:.0%}" if all_ else "0%"


def spread(parts: Iterable[Part], saving: float) -> dict[int, float]:
    """A saving divided over parts by their time."""
    members = list(parts)
    total = sum(part.ns for part in members)
    return {part.id: saving * part.ns / total for part in members if total}
