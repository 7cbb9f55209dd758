"""The plan of a capture, as small data: what each finding claims, and what it predicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.report import plan_of
from fastprof.analysis.advice.savings import Saving
from fastprof.model.arrays import Int32, Int64
from fastprof.profile.data import ProfileData


class Claim(NamedTuple):
    """A finding of a plan.

    Times are per step and GPU.

    Parameters
    ----------
    id : of the rule
    saving_ns : what the step saves by it, after the findings before it, or its share of what
        findings that need each other save
    alone_ns : without other findings
    is_bound : whether these are upper bounds, for lack of a replay
    idle_ns : idle time that it claims, by cause
    gpu_ns : time of kernels that it claims
    groups : the groups of these kernels, ascending, rows of the `Side`
    together : the places in the plan of the findings that need each other, itself included
    """

    id: str
    saving_ns: float
    alone_ns: float
    is_bound: bool
    idle_ns: Mapping[str, float]
    gpu_ns: float
    groups: tuple[int, ...]
    together: tuple[int, ...] = ()

    @property
    def claimed_ns(self) -> float:
        """The idle time and the time of kernels together."""
        return sum(self.idle_ns.values()) + self.gpu_ns


class PlanData(NamedTuple):
    """The findings of a capture that save time, in order.

    because : why there is no plan, "" if there is one
    """

    claims: tuple[Claim, ...]
    because: str = ""

    def data(self) -> dict[str, Any]:
        """The plan for JSON."""
        return {"claims": [claim._asdict() for claim in self.claims], "because": self.because}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> PlanData:
        """The plan of `data`. Damaged data raises KeyError, TypeError or ValueError."""
        tuples = ("groups", "together")
        claims = [
            Claim(**{**claim, **{name: tuple(claim.get(name, ())) for name in tuples}})
            for claim in data["claims"]
        ]
        return cls(tuple(claims), data["because"])


NOT_PLANNED: Final = PlanData(
    (), "several traces, a selection of work and traces that are too large have none"
)


def make_plan(profile: ProfileData, steps: str | None, group: Int32) -> PlanData:
    """The plan of a capture. Reads the file again on first use.

    group : int32 [kernels], rows of the `Side`, -1 for none
    """
    savings = plan_of(Facts(profile, steps)).savings
    return PlanData(tuple(_claim(saving, group) for saving in savings if saving.is_timed))


def _claim(saving: Saving, group: Int32) -> Claim:
    finding = saving.finding
    kernels: Int64 = np.asarray(finding.kernels, np.int64)
    groups = np.unique(group[kernels])
    idle = {cause: float(ns) for cause, ns in finding.idle_ns.items() if ns > 0}
    return Claim(
        saving.rule.id,
        float(saving.ns),
        float(saving.alone),
        bool(saving.is_bound),
        idle,
        float(max(finding.gpu_ns, 0.0)) if len(kernels) else 0.0,
        tuple(groups[groups >= 0].tolist()),
        saving.together,
    )
