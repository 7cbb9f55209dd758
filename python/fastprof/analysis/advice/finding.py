"""Finding: the result of a rule. Imports no numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof.errors import ReportError

CONFIDENCES: Final = ("high", "medium", "low")


class CannotJudge(Exception):
    """Raised by a rule if the capture lacks what it needs; the message says what to record."""


@dataclass(frozen=True)
class Finding:
    """One thing to change.

    A saving is taken from idle time, from the time of some kernels, or both. What a step saves by
    it is replayed; without a replay, it is an upper bound.

    Parameters
    ----------
    what : one sentence
    remedy : one or two changes, with the call of torch
    where : layer, source line, operator, shapes or range
    evidence : the numbers
    confidence : one of CONFIDENCES
    why : the reason for the confidence
    idle_ns : idle time saved per step and GPU, by cause (`idle_causes.CAUSES`), ns
    kernels : int [any], rows of the kernels whose time is saved
    gpu_ns : time of these kernels saved per step and GPU, ns; at most `Facts.own_ns` of them
    overlaps : whether these kernels take as long, but behind other work
    cause : a sentence for the opening, {time} is the part of a step that is concerned, such as
        `47 of 209 ms a step`; `what` with that part if empty
    effect : the sentence after it, {saving} is such as `about 44 ms`; one that fits all if empty
    """

    what: str
    remedy: str
    where: str = ""
    evidence: str = ""
    confidence: str = "medium"
    why: str = ""
    idle_ns: Mapping[str, float] = field(default_factory=dict)
    kernels: Any = ()
    gpu_ns: float = 0.0
    overlaps: bool = False
    cause: str = ""
    effect: str = ""

    def __post_init__(self) -> None:
        """Check the confidence.

        Raises
        ------
        ReportError
            It is not one of CONFIDENCES.
        """
        if self.confidence not in CONFIDENCES:
            raise ReportError(
                f"finding: expected confidence {', '.join(CONFIDENCES)}; found {self.confidence!r}"
            )
