"""What a rule of kernels found in groups of equal calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.analysis.advice.calls import CallGroup, Calls, Part
from fastprof.analysis.advice.finding import Finding
from fastprof.model.quantity import quantity

_NAME: Final = 60  # characters of a kernel's name


@dataclass(frozen=True)
class Found:
    """A finding about calls.

    Parameters
    ----------
    what : one sentence
    groups : the calls concerned, the most important first
    saved : upper bound of the saving a step, ns, by `Part.id`; at most the part's time
    evidence : numbers and names by label; `_ns` and `_share` at the end of a label are units
    remedy : one or two changes, the simplest first
    confidence : "high", "medium" or "low"
    why : the reason for the confidence
    idle_ns : the saving a step of idle time by cause, ns
    cause, effect : see `Finding`
    """

    what: str
    groups: Sequence[CallGroup]
    saved: Mapping[int, float]
    evidence: Mapping[str, Any]
    remedy: tuple[str, ...]
    confidence: str
    why: str
    idle_ns: Mapping[str, float] = field(default_factory=dict)
    cause: str = ""
    effect: str = ""

    @property
    def saving_ns(self) -> float:
        """The saving of GPU time a step."""
        return sum(self.saved.values())

    def finding(self, calls: Calls) -> Finding:
        """The same for the report."""
        is_saved = np.zeros(max(self.saved, default=0) + 2, bool)
        is_saved[[part for part, ns in self.saved.items() if ns > 0]] = True
        place = np.minimum(calls.part_of_kernel, len(is_saved) - 1)  # the last is False
        return Finding(
            what=f"{self.what}.",
            remedy="; ".join(self.remedy),
            where=_where(self.groups),
            evidence="; ".join(_item(key, value) for key, value in self.evidence.items()),
            confidence=self.confidence,
            why=self.why,
            idle_ns=self.idle_ns,
            kernels=np.flatnonzero(is_saved[place]),
            gpu_ns=self.saving_ns,
            cause=self.cause,
            effect=self.effect,
        )


def _where(groups: Sequence[CallGroup]) -> str:
    """The first group in words, and how many others there are."""
    first = groups[0]
    call = " ".join(filter(None, [first.op, (first.shape or "").rstrip(",")]))
    places = [":".join(first.layer[-3:]), first.line]
    parts = [f"{calls_text(first.calls)} {call}" if call else "", *places]
    others = f"and {len(groups) - 1} more" if len(groups) > 1 and any(parts) else ""
    return ", ".join(filter(None, [*parts, others]))


def _item(key: str, value: Any) -> str:
    """A label with its value."""
    label = key.removesuffix("_ns").removesuffix("_share").replace("_", " ")
    label = {"gpu": "GPU time"}.get(label, label) if key.endswith("_ns") else label
    if key.endswith("_ns"):
        return f"{label} {quantity(round(value), 'ns')}"
    if key.endswith("_share"):
        return f"{label} {value:.1%}"
    if isinstance(value, float):
        return f"{label} {value:.4g}"
    return f"{label} {str(value)[:_NAME]}"


def by_time(groups: Iterable[CallGroup]) -> list[CallGroup]:
    """The groups with the most time first."""
    return sorted(groups, key=lambda each: -each.ns)


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
