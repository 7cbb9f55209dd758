"""The headings of `copies`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.registry import Option
from fastprof.model.heading import Heading

FLAGS: Final = ["", "size too high", "above peak"]


def _bus(text: str) -> float:
    from fastprof.model.devices import positive

    return positive("--bus", text)


BUS: Final = Option(
    "bus", "peak of the bus between host and GPU in GB/s, each direction", "GB/s", _bus
)

COLUMNS: Final = (
    Heading("copies", "count", "", "copies and memsets", rank=1),
    Heading("bytes", "size", "bytes", "bytes copied or set", rank=2),
    Heading("time_ns", "time", "ns", "time on the GPU"),
    Heading(
        "step_ns",
        "step",
        "ns",
        "time per counted step and GPU, if steps are known",
        same_unit="time_ns",
        rank=5,
    ),
    Heading("mean_ns", "mean", "ns", "mean time", in_text=False),
    Heading("max_ns", "longest", "ns", "longest time", in_text=False),
    Heading(
        "bytes_per_s",
        "rate",
        "bytes/s",
        "bytes by time, where both are known",
        digits=5,
        largest_unit="GB/s",
    ),
    Heading(
        "peak_share",
        "peak",
        "share",
        "rate by the peak of the bus or, for copies within a GPU and memsets, of its memory, which "
        "copies read and write",
        rank=3,
    ),
    Heading(
        "flag",
        "flag",
        "",
        "size too high: the GPU cannot copy so many bytes in this time; above peak: in its cache",
    ),
    Heading("blocking", "blocking", "", "copies that the host waits for", in_text=False),
    Heading(
        "blocked_ns",
        "blocked",
        "ns",
        "time that the host waits for copies: in the call, and in a StreamSynchronize right after",
    ),
    Heading(
        "exposed_ns",
        "exposed",
        "ns",
        "time during which the GPU only copies; overlapping copies share it",
        same_unit="time_ns",
    ),
    Heading(
        "longest_at",
        "longest in",
        "",
        "source line of the longest copy, else its layer or operator",
        keeps_end=True,
        rank=4,
    ),
    Heading("longest_line", "line", "", "source line of the longest copy", in_text=False),
    Heading("longest_layer", "layer", "", "layer of the longest copy", in_text=False),
    Heading("longest_op", "op", "", "operator of the longest copy", in_text=False),
)

DESCRIPTION: Final = """\
Memory copies and memsets by direction, kind of host memory and size: rate, share
of the peak, and what waits for them. The host waits (blocked) in copies without
Async, in copies from pageable memory, and where a StreamSynchronize follows, as
in .item() and .cpu(); this includes the wait for earlier work. A copy is exposed
while the GPU runs no kernel. The peak between host and GPU is that of the fastest
PCIe bus that the GPU supports, or --bus. Copies within a GPU read and write its
memory: their peak is half its bandwidth. Small ones stay in the cache, and exceed
it (above peak). More bytes than the GPU can move in the time have no rate (size
too high).

$ fastprof copies resnet50.json.gz -w 80
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
324 copies and memsets of 482.1 MB take 12.03 ms, 2.004 ms per step (1.1% of the
  step)
exposed 12.03 ms, during which the GPU only copies; the host waits 12.61 ms in
  12 of them
HtoD: 12 of 12 copies from pageable memory, 100.0% of the bytes; pinned memory
  and non_blocking=True let them overlap with kernels

direction  memory    size_class  time(ms)  rate(GB/s)  blocked(ms)  exposed(ms)
HtoD       pageable  16-256 MB      11.49       10.06        12.49        11.49
memset     device    1-16 MB         0.35      980.78         0.00         0.35
memset     device    64 kB-1 MB      0.11      229.21         0.00         0.11
memset     device    < 4 kB          0.06        0.40         0.00         0.06
memset     device    4-64 kB         0.02       21.46         0.00         0.02
HtoD       pageable  < 4 kB          0.01        0.26         0.12         0.01
total                               12.03                    12.61        12.03
(too narrow for count, size(MB), step(ms), peak(%), longest in)
peak of the bus: PCIe 3.0 x16, 15.75 GB/s in each direction, the most that the
  GPU supports; the machine may have less: --bus GB/s
"""
