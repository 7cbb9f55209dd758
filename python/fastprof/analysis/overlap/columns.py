"""The headings and help of `overlap`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastprof.analysis.key_names import heading_of
from fastprof.model.heading import Heading

# The keys without --by, each if the trace records it.
DEFAULT_KEYS: Final = (
    *("device", "collective", "process_group", "group_size"),
    *("message_bytes", "message_type", "stream"),
)
_HEADERS: Final = {
    "device": "GPU",
    "process_group": "group",
    "group_size": "ranks",
    "message_bytes": "size",
    "message_type": "type",
}
_UNITS: Final = {"message_bytes": "bytes"}
_RANKS: Final = {"stream": 3, "message_type": 2, "process_group": 1, "group_size": 1}

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
    Heading(
        "step_exposed_ns",
        "exposed/step",
        "ns",
        "exposed time per counted step and GPU, if known",
        rank=1,
    ),
    Heading(
        "bytes", "bytes", "bytes", "sizes of all calls, as NCCL's tests define them", in_text=False
    ),
    Heading("in_bytes", "in", "bytes", "input of this rank, all calls", in_text=False),
    Heading("out_bytes", "out", "bytes", "output of this rank, all calls", in_text=False),
    Heading(
        "algorithm_bytes_per_s",
        "algbw",
        "bytes/s",
        "algorithm bandwidth: bytes by time, of calls of known size; na if above that of any GPU's "
        "memory",
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
    heading = heading_of(name)
    return replace(
        heading,
        header=_HEADERS.get(name, heading.header),
        unit=_UNITS.get(name, ""),
        rank=_RANKS.get(name, 0),
    )


DESCRIPTION: Final = """\
How much communication hides behind compute, and how fast the collectives are. A collective is
exposed while no compute kernel runs on its GPU: the step waits for it.

The lines above the table divide the time of each GPU: compute, exposed communication, copies while
neither runs, and idle. Communication kernels that overlap each other count once in hidden and
exposed, for the one that started first; time is the sum of their durations.

  size     of a call, as NCCL's tests define it: the complete array, such as the output of an
           all-gather
  algbw    algorithm bandwidth: size by time
  busbw    bus bandwidth, comparable with the link's: algbw times 2(n-1)/n for an all-reduce of n
           ranks, (n-1)/n for all-gather, reduce-scatter, all-to-all, gather and scatter, else 1

Sizes come from torch.profiler's record of the call, else from the operator's shapes and types. A
kernel runs until all ranks have arrived, so bandwidths include waiting.

$ fastprof overlap nccl_params.json.gz --limit 4 -w 96
GPU  span(ms)  compute(ms)  exposed(ms)  copy(ms)  idle(ms)  comm(ms)  hidden(%)
  0     660.6        115.7         39.6       2.3     503.1      46.9       15.6
span = compute + exposed communication + exposed copies + idle

collective  group         ranks  size      calls  time(ms)  exposed(ms)  hidden(%)  busbw(GB/s)
all_reduce  0 default_pg      2  8.196 MB      3     11.82         9.92       16.1         2.08
all_reduce  0 default_pg      2  31.5 MB       3     11.08         8.82       20.4         8.53
all_reduce  0 default_pg      2  26.26 MB      3     10.80         8.65       19.9         7.29
all_reduce  0 default_pg      2  26.55 MB      3      7.21         6.21       13.9        11.04
... 3 more rows
total                                         21     46.88        39.56       15.6
times include waiting for other ranks; fastprof ranks tells for which, and why

  fastprof overlap --by op,layer,line net.json.gz
  fastprof overlap --by step --where collective=all_reduce net.json.gz
"""
