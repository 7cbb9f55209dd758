"""What the plan of BEFORE predicted for the findings that are gone, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.diff.answer import calls_ratio
from fastprof.analysis.diff.plan import Claim, PlanData
from fastprof.analysis.diff.waterfall import STEPS, Half, Waterfall
from fastprof.analysis.idle.causes import CAUSES
from fastprof.model.arrays import Bools, Int64
from fastprof.model.numbers import quantity

_LEAST: Final = 0.01  # of the step: smaller parts do not make a finding
_GONE: Final = 0.5  # share of what a finding claims that AFTER no longer has
_ALL: Final = 0.995
_SHOWN: Final = 5  # earlier pairs
_RESHAPED: Final = 0.2  # share of the GPU time


class Prediction(NamedTuple):
    """A finding of BEFORE that is gone, or most of it.

    Parameters
    ----------
    id : of the rule
    gone : the share of what it claims that is gone, at most 1
    predicted_ns : what the step saves by it alone, or after other findings that are gone; this
        share of it
    own_ns : how much less of the idle time and kernels that it is about a step has
    is_bound : whether the prediction is an upper bound, for lack of a replay
    """

    id: str
    gone: float
    predicted_ns: float
    own_ns: float
    is_bound: bool


class Predictions(NamedTuple):
    """What was predicted, and what was measured.

    Parameters
    ----------
    gone : findings, in the order of the plan
    measured_ns : how much shorter the step is
    is_same_work : whether nothing else differs in the work
    because : why nothing is compared, "" if it is
    """

    gone: tuple[Prediction, ...]
    measured_ns: float
    is_same_work: bool
    because: str = ""

    @property
    def predicted_ns(self) -> float:
        """By all that are gone together."""
        return sum(prediction.predicted_ns for prediction in self.gone)

    def facts(self) -> dict[str, Any]:
        """The comparison for JSON."""
        return {
            "because": self.because or None,
            "predicted_ns": round(self.predicted_ns) if self.gone else None,
            "measured_ns": round(self.measured_ns),
            "findings": [
                {
                    "id": prediction.id,
                    "gone": prediction.gone,
                    "predicted_ns": round(prediction.predicted_ns),
                    "own_ns": round(prediction.own_ns),
                    "is_bound": prediction.is_bound,
                }
                for prediction in self.gone
            ],
        }

    def lines(self) -> Iterator[str]:
        """The comparison in words."""
        if self.because:
            yield f"the plan of BEFORE is not compared: {self.because}"
        elif self.gone:
            ids = ", ".join(dict.fromkeys(prediction.id for prediction in self.gone))
            most = "at most " if any(prediction.is_bound for prediction in self.gone) else ""
            yield (
                f"gone: {ids}; the plan of BEFORE predicted {most}{_ns(self.predicted_ns)}, "
                f"measured {_ns(self.measured_ns)}"
            )
            for prediction in self.gone:
                part = "" if prediction.gone >= _ALL else f", {prediction.gone:.0%} of it gone"
                yield (
                    f"  {prediction.id}{part}: predicted {_ns(prediction.predicted_ns)}; its idle "
                    f"time and kernels take {_ns(prediction.own_ns)} less"
                )
            if not self.is_same_work:
                yield "  the work differs: some of the change may have other reasons"


def _ns(ns: float) -> str:
    return quantity(round(ns), "ns")


def earlier_lines(pairs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Earlier predictions in words; see `store.earlier`."""
    shares = [pair["measured_ns"] / pair["predicted_ns"] for pair in pairs if pair["predicted_ns"]]
    if shares:
        count = f"{len(shares)} earlier comparison{'s' if len(shares) > 1 else ''}"
        yield f"{count} with baselines here: measured {np.median(shares):.0%} of what was predicted"
    for pair in pairs[-_SHOWN:]:
        yield (
            f"  {', '.join(pair['ids'])}: predicted {_ns(pair['predicted_ns'])}, "
            f"measured {_ns(pair['measured_ns'])}"
        )


def predictions(waterfall: Waterfall) -> Predictions | None:
    """The findings of BEFORE that are gone; None if no part of the step is that much shorter.

    Makes the plan of BEFORE unless it is stored.
    """
    before, after = waterfall.wall_ns
    parts = _Parts(waterfall)
    if not parts.has_gains(_LEAST * before):
        return None
    because = _not_comparable(waterfall)
    plan = PlanData((), because) if because else waterfall.before.side.plan()
    places = [i for i, claim in enumerate(plan.claims) if parts.gone_of(claim) >= _GONE]
    rows = []
    for claim in (plan.claims[i] for i in places):
        # What findings that need each other share counts if all of them are gone.
        is_alone = len(places) == 1 or not {*claim.together} <= {*places}
        rows.append(_prediction(parts, claim, claim.alone_ns if is_alone else claim.saving_ns))
    return Predictions(tuple(rows), float(before - after), waterfall.same_work, plan.because)


def _prediction(parts: _Parts, claim: Claim, ns: float) -> Prediction:
    share = parts.gone_of(claim)
    return Prediction(claim.id, share, share * ns, parts.gain_of(claim), claim.is_bound)


def _not_comparable(waterfall: Waterfall) -> str:
    """Why steps of both sides cannot be compared, "" if they can."""
    before, after = (half.side for half in waterfall.halves)
    if waterfall.unit != STEPS:
        return "a capture has no steps"
    if before.gpus and after.gpus and before.gpus != after.gpus:
        return "the GPUs differ"
    ratio = calls_ratio(waterfall)
    if ratio is not None:
        return f"a step of AFTER makes {ratio:.4g} times the calls"
    reshaped = np.array([how == "shape" for how in waterfall.matched.how], bool)
    if any(_share(half, reshaped) >= _RESHAPED for half in waterfall.halves):
        return "the shapes differ"
    return ""


def _share(half: Half, rows: Bools) -> float:
    return float(half.gpu_ns[rows[half.row]].sum() / max(int(half.gpu_ns.sum()), 1))


class _Parts:
    """How much less idle time and time of kernels a step has after."""

    def __init__(self, waterfall: Waterfall) -> None:
        before, after = waterfall.halves
        n = waterfall.n_rows
        self._row = before.row
        self.idle: Int64 = before.idle_ns - after.idle_ns
        self.rows: Int64 = before.sums(before.own_ns, n) - after.sums(after.own_ns, n)

    def has_gains(self, least: float) -> bool:
        """Whether all that is shorter together is as long as `least`, ns."""
        return float(np.maximum(self.idle, 0).sum() + np.maximum(self.rows, 0).sum()) >= least

    def gain_of(self, claim: Claim) -> float:
        """ns less of the idle causes and the kernels that a finding is about."""
        idle = sum(int(self.idle[CAUSES.index(cause)]) for cause in claim.idle_ns)
        rows = np.unique(self._row[np.array(claim.groups, np.int64)])
        return float(idle + self.rows[rows].sum())

    def gone_of(self, claim: Claim) -> float:
        """The share of what a finding claims that is gone, from 0 to 1."""
        gain = max(self.gain_of(claim), 0.0)
        return min(gain / claim.claimed_ns, 1.0) if claim.claimed_ns > 0 else 0.0
