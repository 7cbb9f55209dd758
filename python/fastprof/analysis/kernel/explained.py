"""What is known of one kernel, and why the rest is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.cells import cells_of
from fastprof.analysis.find.rows import origin_of, starts, why_unknown
from fastprof.analysis.grouping import numbers
from fastprof.analysis.kernel.waited import waited_for
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.ideal import BANDWIDTH, COMPUTE, Ideals, ideals_of
from fastprof.analysis.stats.gpu import printed
from fastprof.model.arrays import Int64
from fastprof.model.devices import Device
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData, kept

Facts = dict[str, Any]

_KEYS: Final = {
    "kernel": "kernel", "name": "name", "kind": "kind", "op": "op", "module": "mod", "dir": "dir",
    "phase": "phase", "shape": "shape", "layer": "layer", "line": "line",
    "library_line": "library_line", "range": "range", "step": "step", "device": "device",
    "stream": "stream", "process": "process", "thread": "thread", "compute_type": "compute_type",
    "tc": "tc",
}  # fmt: skip
_COLUMNS: Final = (
    *("context", "correlation", "grid", "block", "registers", "shared_memory", "tc_reason"),
    *("trace", "ranges", "graph_id", "graph_node"),
)
_OF_COPIES: Final = {
    "copied_bytes": "copied", "direction": "copy_direction", "memory": "copy_memory",
}  # fmt: skip


def explained(
    profile: ProfileData, row: int, devices: Mapping[int, Device]
) -> tuple[Facts, dict[str, str]]:
    """All that is known of a kernel, as values for JSON; and why values are unknown, by name.

    devices : the GPUs by number, with their peaks
    """
    facts: Facts = {"idx": row + 1}
    facts |= {name: key_of(profile, key).at(row) for name, key in _KEYS.items()}
    facts |= _times(profile, row)
    facts |= {name: _at(profile, name, row) for name in _COLUMNS if name in profile.names}
    if "start" in profile.names:
        facts["triton"] = _at(profile, "triton", row)
    if facts["kind"] in ("memcpy", "memset"):
        facts |= _copy(profile, row)
    facts["call"] = _call(profile, row)
    facts["cost"] = _cost(profile, row, devices)
    facts["same_name"] = _same_name(profile, row)
    facts["launch"] = _launch(profile, row)
    facts["waited"] = waited_for(profile, row)
    return facts, _reasons(profile, facts)


def _at(profile: ProfileData, name: str, row: int) -> Any:
    value = profile.column(name).at(row)
    return list(value) if isinstance(value, tuple) else value


def _times(profile: ProfileData, row: int) -> Facts:
    start, length = int(starts(profile)[row]), _at(profile, "sil", row)
    if start == NO_TIME:
        return {"at_ns": None, "start_ns": None, "end_ns": None, "gpu_ns": length}
    end = None if length is None else start + length
    at = start - origin_of(profile)
    return {"at_ns": at, "start_ns": start, "end_ns": end, "gpu_ns": length}


def _copy(profile: ProfileData, row: int) -> Facts:
    facts = {name: _at(profile, column, row) for name, column in _OF_COPIES.items()}
    length, copied = _at(profile, "sil", row), facts["copied_bytes"]
    rate = copied / length * 1e9 if copied is not None and length else None
    return {**facts, "bytes_per_s": rate}


def _call(profile: ProfileData, row: int) -> Facts | None:
    """The call of the operator that launched it: its kernels and their time."""
    number = _at(profile, "call", row)
    if number is None:
        return None
    rows = np.flatnonzero(np.asarray(numbers(profile, "call")) == number)
    return {
        "number": number,
        "kernels": len(rows),
        "place": int(np.searchsorted(rows, row)) + 1,
        "gpu_ns": int(_lengths(profile)[rows].sum()),
        "idx": [int(row) + 1 for row in rows[:20]],
    }


def _lengths(profile: ProfileData) -> Int64:
    return np.maximum(np.asarray(numbers(profile, "sil"), np.int64), 0)


def _cost(profile: ProfileData, row: int, devices: Mapping[int, Device]) -> Facts:
    """FLOPs and bytes, and its time at the peak rates of the GPU."""
    flops, bytes_, length = (_at(profile, name, row) for name in ("flops", "bytes", "sil"))
    per_flop, per_byte, bound = _rates(profile, row, devices)
    facts = {
        "flops": flops,
        "bytes": bytes_,
        "is_exact": None if flops is None else _at(profile, "exact", row) == 1,
        "flop_per_s": flops / length * 1e9 if flops and length else None,
        "bytes_per_s": bytes_ / length * 1e9 if bytes_ and length else None,
        "ideal_ns": None,
        "roof_share": None,
        "bound": None,
    }
    if bound < 0:
        return facts
    ideal = (flops or 0) * per_flop + (bytes_ or 0) * per_byte
    return {
        **facts,
        "ideal_ns": ideal,
        "roof_share": ideal / length if length else None,
        "bound": {COMPUTE: "compute", BANDWIDTH: "bandwidth"}[bound],
    }


def _rates(
    profile: ProfileData, row: int, devices: Mapping[int, Device]
) -> tuple[float, float, int]:
    """ns per FLOP and ns per byte of a kernel, and what bounds it; -1 if that is unknown."""
    cells = cells_of(profile)
    if devices is profile.devices:
        ideals = kept(profile, _ideals_at_peak)
    else:
        ideals = ideals_of(cells, devices)
    cell = int(cells.of_kernel[row])
    return float(ideals.per_flop[cell]), float(ideals.per_byte[cell]), int(ideals.bound[cell])


def _ideals_at_peak(profile: ProfileData) -> Ideals:
    return ideals_of(cells_of(profile), profile.devices)


def _same_name(profile: ProfileData, row: int) -> Facts:
    """How it compares with the kernels of its full name."""
    names = key_of(profile, "name")
    ids = names.ids
    rows = np.flatnonzero(ids == ids[row])
    length = _lengths(profile)
    times = length[rows]
    return {
        "kernels": len(rows),
        "place": int(np.searchsorted(rows, row)) + 1,
        "longer": int(np.count_nonzero(times > length[row])),
        "median_ns": float(np.median(times)),
        "min_ns": int(times.min()),
        "max_ns": int(times.max()),
    }


def _launch(profile: ProfileData, row: int) -> Facts | None:
    """The API call that launched it, and the time from there to its start; None if unknown."""
    if "start" not in profile.names:
        return None
    api = profile.api
    call = int(api.of_kernel[row])
    if call < 0:
        return None
    start, begin, end = int(starts(profile)[row]), int(api.start[call]), int(api.end[call])
    is_closed = end != NEVER
    return {
        "call": printed(api.name).at(call),
        "at_ns": begin - origin_of(profile),
        "host_ns": end - begin if is_closed else None,
        "to_start_ns": start - begin if start >= begin else None,
        "queue_ns": start - end if is_closed and start >= end else None,
        "thread": int(take(api.threads.tid, api.thread[call : call + 1])[0]),
        "kernels": int(np.count_nonzero(api.of_kernel == call)),
    }


def _reasons(profile: ProfileData, facts: Facts) -> dict[str, str]:
    """Why values are unknown, by name."""
    reasons = {}
    is_copy = facts["kind"] in ("memcpy", "memset")
    if facts["cost"]["flops"] is None:
        why = "copies and memsets have no FLOPs"
        reasons["cost"] = why if is_copy else _why_no_cost(profile, facts)
    if facts["launch"] is None:
        reasons["launch"] = "launched before the recording began, or launches were not recorded"
    names = ("op", "shape", "line", *(() if profile.contents.layers else ("layer",)))
    unknown = [name for name in names if facts[name] is None]
    reasons |= why_unknown(profile, unknown)
    if facts["cost"]["flops"] is not None and facts["cost"]["bound"] is None:
        why = "the peak of the GPU, or the cost of most of the call, is unknown"
        reasons["roof"] = "copies from and to the host have no roof" if is_copy else why
    return {name: reason for name, reason in reasons.items() if reason}


def _why_no_cost(profile: ProfileData, facts: Facts) -> str:
    """Why the FLOPs of an operator are unknown."""
    name = facts["op"] and ".".join(filter(None, (facts["module"], facts["op"])))
    known = {
        cost.reason: None
        for cost in profile.coverage_of_kernels.unknown()
        if cost.op == name and (cost.direction == (facts["dir"] or "na") or name is None)
    }
    return "; or ".join(list(known)[:3]) or "it has no share of the cost of its call"
