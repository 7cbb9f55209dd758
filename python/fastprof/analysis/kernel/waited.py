"""What one kernel waited for: its launch, its stream, or something else."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fastprof.analysis.find.rows import starts
from fastprof.analysis.gpu_work import answered_work
from fastprof.analysis.grouping import numbers
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.idle.gaps import PLACES, examine, places_of
from fastprof.analysis.kernel.stream import on_stream_of
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData

LAUNCH, STREAM, OTHER, UNKNOWN = "launch", "stream", "other work", "unknown"
_LATENCY: Final = 20_000  # ns from launch to start without anything to wait for
_SOON: Final = 20_000  # ns between the end of the work waited for and the start


def waited_for(profile: ProfileData, row: int) -> dict[str, Any] | None:
    """What a kernel waited for last; None without times.

    Returns
    -------
    dict
        - for: `stream`: for the work before it on its stream; `launch`: it starts right after its
          launch; `other work`: neither, such as an event of another stream; `unknown`
        - idx: the kernel waited for, if known
        - ns: from its launch to its start
        - stream_idle_ns: from the end of the work before it on its stream
        - gpu_idle_ns, cause, call, line, op, ...: if the whole GPU was idle before it, for how long
          and why, as in `fastprof idle`
    """
    start, length = starts(profile), np.maximum(np.asarray(numbers(profile, "sil"), np.int64), 0)
    if start[row] == NO_TIME:
        return None
    api = profile.api
    call, begin = int(api.of_kernel[row]), int(start[row])
    lane = on_stream_of(profile, row)
    earlier = lane[lane < row]
    end = int((start[earlier] + length[earlier]).max()) if len(earlier) else None
    last = int(earlier[(start[earlier] + length[earlier]).argmax()]) if len(earlier) else None
    launched = None if call < 0 or api.end[call] == NEVER else int(api.start[call])
    # A kernel may start while its launch is still in progress.
    given = launched if launched is None or api.end[call] > begin else int(api.end[call])
    what, of = _last_condition(profile, row, given, end, last)
    return {
        "for": what,
        "idx": None if of is None else of + 1,
        "ns": None if launched is None or begin < launched else begin - launched,
        "stream_idle_ns": None if end is None else max(begin - end, 0),
        **_idle_before(profile, row),
    }


def _last_condition(
    profile: ProfileData, row: int, launched: int | None, end: int | None, last: int | None
) -> tuple[str, int | None]:
    """What was fulfilled last before a kernel started, and the kernel waited for.

    launched : when it was launched, ns
    end, last : of the work before it on its stream: its end in ns, and its row
    """
    begin = int(starts(profile)[row])
    if launched is None:
        return UNKNOWN, None
    ready = max(launched, end if end is not None else launched)
    if begin - ready <= _LATENCY:
        return (STREAM, last) if end is not None and end > launched else (LAUNCH, None)
    return OTHER, _ended_just_before(profile, row)


def _ended_just_before(profile: ProfileData, row: int) -> int | None:
    """The work of the process on another stream that ends last, shortly before a kernel starts."""
    start = starts(profile)
    end = start + np.maximum(np.asarray(numbers(profile, "sil"), np.int64), 0)
    pid = np.asarray(numbers(profile, "pid"))
    fits = (end <= start[row]) & (end >= start[row] - _SOON) & (pid == pid[row])
    fits[on_stream_of(profile, row)] = False
    rows = np.flatnonzero(fits)
    return int(rows[end[rows].argmax()]) if len(rows) else None


def _idle_before(profile: ProfileData, row: int) -> dict[str, Any]:
    """How long the whole GPU was idle before a kernel, and why; without, 0 and None."""
    nothing = {"gpu_idle_ns": 0, "cause": None}
    work = answered_work(profile)
    if not work:
        return nothing
    examined = examine(profile, work)
    gaps = examined.gaps
    for each in np.flatnonzero(gaps.after == row).tolist():
        places = places_of(profile, examined)
        return {
            "gpu_idle_ns": int(gaps.end[each] - gaps.start[each]),
            "cause": CAUSES[int(examined.causes.main[each])],
            **{f"idle_{name}": places[name].at(each) for name in PLACES},
        }
    short = examined.short
    for each in np.flatnonzero(short.after == row).tolist():
        return {**nothing, "gpu_idle_ns": int(short.end[each] - short.start[each])}
    return nothing
