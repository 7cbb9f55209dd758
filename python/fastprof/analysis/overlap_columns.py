"""The headings and help of `overlap`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastprof.analysis.key_names import heading_of
from fastprof.model.heading import Heading

__all__ = ["COLUMNS", "DEFAULT_KEYS", "DESCRIPTION", "key_heading"]

# The keys without --by, each if the trace records it.
DEFAULT_KEYS: Final = (
    "device", "collective", "group", "group_size", "message_bytes", "message_type", "stream",
)  # fmt: skip
_HEADERS: Final = {
    "device": "GPU",
    "group_size": "ranks",
    "message_bytes": "size",
    "message_type": "type",
}
_UNITS: Final = {"message_bytes": "bytes"}
_RANKS: Final = {"stream": 2, "message_type": 1, "group_size": 1}

COLUMNS: Final = (
    Heading("calls", "calls", "", "calls of collectives; one may launch several kernels"),
    Heading("kernels", "kernels", "", "communication kernels", rank=3),
    Heading("time_ns", "time", "ns", "sum of the kernels' durations, waiting for ranks included"),
    Heading("mean_ns", "mean", "ns", "mean duration of a call", rank=2),
    Heading(
        "exposed_ns",
        "exposed",
        "ns",
        "part of the time during which no compute kernel runs on the GPU",
        same_unit="time_ns",
    ),
    Heading(
        "hidden_ns",
        "hidden",
        "ns",
        "part of the time during which a compute kernel runs on the GPU, on any stream",
        same_unit="time_ns",
        in_text=False,
    ),
    Heading("hidden_share", "hidden", "share", "hidden by hidden + exposed"),
    Heading("step_exposed_ns", "exposed/step", "ns", "exposed time per step, if steps are known"),
    Heading(
        "bytes", "bytes", "bytes", "sizes of all calls, as NCCL's tests define them", in_text=False
    ),
    Heading("in_bytes", "in", "bytes", "input of this rank, all calls", in_text=False),
    Heading("out_bytes", "out", "bytes", "output of this rank, all calls", in_text=False),
    Heading(
        "algorithm_bytes_per_s",
        "algbw",
        "bytes/s",
        "algorithm bandwidth: bytes by time, of calls of known size",
        rank=1,
    ),
    Heading(
        "bus_bytes_per_s",
        "busbw",
        "bytes/s",
        "bus bandwidth: what each rank's link carries, of calls of known size and group",
    ),
)


def key_heading(name: str) -> Heading:
    """The heading of a key's column."""
    found = heading_of(name)
    return replace(
        found,
        header=_HEADERS.get(name, found.header),
        unit=_UNITS.get(name, ""),
        rank=_RANKS.get(name, 0),
    )


DESCRIPTION: Final = ""
