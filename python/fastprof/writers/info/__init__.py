"""`fastprof info`: contents of a file, share of GPU time attributed, and advice."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from fastprof.model.trace import NEVER
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice
from fastprof.writers.info.text import info_text

__all__ = ["describe", "info_text"]

_RANK: Final = ("backend", "rank", "world_size")
_LACKS: Final = ("lost_launches", "truncated_stacks", "ranges_without_work", "open_ranges")


def describe(profile: ProfileData, most: int | None = None) -> dict[str, Any]:
    """Summarize a file as values that JSON can represent; times are ns on the trace's clock.

    most : how many GPUs, processes and threads to list at most; None for all

    The coverage includes kernels and graphs, not memory copies and memsets. Values that the file
    does not contain are None.
    """
    about, contents, coverage = profile.about, profile.contents, profile.coverage_of_kernels
    gaps = advice(about, contents, coverage)
    total, rows = coverage.total, contents.devices
    capture, rank = profile.graph_capture, about.distributed
    return {
        "file": profile.name,
        "format": about.format,
        "tool": about.tool,
        "tool_version": about.tool_version,
        "schema_version": about.schema_version,
        "program": contents.program.facts(),
        "versions": about.versions,
        "read_by": {
            table: {"way": "sqlite" if why else "pages", "why": why or None}
            for table, why in sorted(about.read_by.items())
        },
        "settings": about.settings,
        "gpus": [
            {"device": device, "name": about.gpus.get(device), "rows": rows.get(device, 0)}
            for device in sorted({*about.gpus, *rows})[:most]
        ],
        "rank": None if rank is None else {name: getattr(rank, name) for name in _RANK},
        "processes": None
        if contents.processes is None
        else [{"pid": pid, "name": about.processes.get(pid)} for pid in contents.processes[:most]],
        "threads": contents.threads,
        "thread_names": [
            {"pid": pid, "tid": tid, "name": name}
            for (pid, tid), name in islice(about.threads.items(), most)
        ],
        "span": None
        if contents.span is None
        else dict(zip(("start", "end"), contents.span, strict=True)),
        "steps": _steps(profile),
        "diagnostics": about.diagnostics,
        "unrecorded": None if about.unrecorded is None else about.unrecorded.facts(),
        "work": {kind: {"count": n, "time": time} for kind, (n, time) in contents.work.items()},
        "launches": contents.launches,
        **{name: getattr(contents, name) for name in _LACKS},
        "ranges": contents.ranges,
        "has": {
            "shapes": contents.shapes,
            "types": contents.types,
            "stacks": contents.stacks,
            "layers": contents.layers,
            "sequence_numbers": contents.sequence_numbers,
            "memory": len(about.memory) > 0,
        },
        "graph_capture": None if capture is None else {**vars(capture), "files": [*capture.files]},
        "memory_events": len(about.memory),
        "gpu_time": total,
        "coverage": [
            {"depth": depth, "time": time, "share": time / total if total else None}
            for depth, time in coverage.known.items()
        ],
        "advice": gaps,
        "warnings": profile.warnings,
    }


def _steps(profile: ProfileData) -> list[dict[str, Any]]:
    steps = profile.about.steps
    columns = (steps.number, steps.start, steps.end, steps.pid)
    return [
        {
            "number": number,
            "start": start,
            "end": None if end == NEVER else end,
            "pid": None if pid < 0 else pid,
        }
        for number, start, end, pid in zip(*(column.tolist() for column in columns), strict=True)
    ]
