"""Communication hidden behind compute and exposed, by GPU and by kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastprof.analysis.gpu_work import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    GpuWork,
    ns_with,
    sweep,
    work_of_device,
)
from fastprof.model.arrays import Int64
from fastprof.profile.profile import Profile

__all__ = ["Exposure", "TimeLine", "exposure"]


class TimeLine(NamedTuple):
    """The time line of a GPU: span = compute + exposed communication + exposed copy + idle, ns.

    Parameters
    ----------
    span : from the start of its first to the end of its last work
    compute, communication : during which at least one such kernel runs
    exposed_communication : communication without compute
    exposed_copy : copies and memsets without compute and communication
    """

    span: int
    compute: int
    communication: int
    exposed_communication: int
    exposed_copy: int
    idle: int

    @property
    def hidden(self) -> int:
        """Communication during compute."""
        return self.communication - self.exposed_communication

    @property
    def hidden_share(self) -> float | None:
        """Of the communication, the share during compute."""
        return self.hidden / self.communication if self.communication else None


@dataclass(frozen=True)
class Exposure:
    """The communication of a profile.

    Each moment counts once: for the communication kernel of its GPU that started first.

    Parameters
    ----------
    of_device : the time line of each GPU
    hidden, exposed : int64 [kernels], ns; 0 for work other than communication
    """

    of_device: dict[int, TimeLine]
    hidden: Int64
    exposed: Int64


def exposure(profile: Profile) -> Exposure:
    """Sweep the work of each GPU; n log n in its communication, linear in its other work."""
    hidden, exposed = np.zeros((2, len(profile)), np.int64)
    of_device = {}
    for device, work in work_of_device(profile).items():
        of_device[device] = _time_line(work)
        places = np.flatnonzero(work.kind == COMMUNICATION)
        start, end = _own_time(work.start[places], work.end[places])
        rows = work.rows[places]
        hidden[rows] = ns_with(sweep(work, (start, end)), COMPUTE)
        exposed[rows] = end - start - hidden[rows]
    return Exposure(of_device, hidden, exposed)


def _own_time(start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """The part of each interval after the end of those that started before it."""
    before = np.maximum.accumulate(end)[:-1]
    begin = np.concatenate([start[:1], np.maximum(start[1:], before)])
    return begin, np.maximum(begin, end)


def _time_line(work: GpuWork) -> TimeLine:
    first, last = work.span
    by_mask = sweep(work, (np.array([first]), np.array([last])))

    def total(kinds: int, without: int = 0) -> int:
        return int(ns_with(by_mask, kinds, without)[0])

    return TimeLine(
        span=last - first,
        compute=total(COMPUTE),
        communication=total(COMMUNICATION),
        exposed_communication=total(COMMUNICATION, COMPUTE),
        exposed_copy=total(COPY, COMPUTE | COMMUNICATION),
        idle=int(by_mask[0, 0]),
    )
