"""The headings and options of `roofline`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.registry import Option
from fastprof.analysis.summary.columns import COVERED
from fastprof.errors import ReportError
from fastprof.model.heading import Heading

ROOFS: Final = ("peak", "practical")

ROOFLINE: Final = (
    Heading("calls", "calls", "", "calls of operators: distinct values of the column call"),
    Heading("kernels", "kernels", "", "rows: kernels, graphs, copies and memsets"),
    Heading("gpu_ns", "gpu", "ns", "GPU time, helpers (casts, transposes, ...) included"),
    Heading("step_ns", "step", "ns", "GPU time per counted step and GPU, if steps are known"),
    Heading("ideal_ns", "ideal", "ns", "max(FLOPs / peak, bytes / bandwidth)"),
    Heading("lost_ns", "lost", "ns", "GPU time of calls above their ideal time, if known"),
    Heading("bound", "bound", "", "compute, bandwidth, or latency: too small to fill the GPU"),
    Heading("peak_share", "roof", "share", "ideal time by GPU time, if known of 90 % of the time"),
    COVERED,
    Heading("flop_per_s", "rate", "flop/s", "flops by the time of work with an ideal time", rank=1),
    Heading("attainable_flop_per_s", "roof rate", "flop/s", "flops by ideal time", in_text=False),
    Heading("peak_flop_per_s", "peak", "flop/s", "peak of its compute type", in_text=False),
    Heading(
        "bytes_per_s", "memory", "bytes/s", "bytes by the time of work with an ideal time", rank=1
    ),
    Heading("intensity", "FLOP/B", "", "arithmetic intensity: flops by bytes", rank=1),
    Heading("compute_type", "type", "", "type of the arithmetic with the most GPU time", rank=1),
    Heading(
        "tc_share", "tc", "share", "time with tensor cores, of products that can use them", rank=1
    ),
    Heading("flops", "work", "flop", "floating point operations", in_text=False),
    Heading("bytes", "memory", "bytes", "bytes to move, without those of helpers", in_text=False),
    Heading("helper_ns", "helpers", "ns", "GPU time of helpers", in_text=False),
    Heading(
        "flag",
        "flag",
        "",
        "no cost, partial cost, cost too high, too short, no peak, no roof, above roof",
    ),
)

DESCRIPTION: Final = """\
Compare GPU time with the time that the work would take at the GPU's peak rates. Rows are groups of
calls of the same operator, direction and shapes; casts, transposes and other helpers count to the
time of their call, not to its work.

  ideal    max(FLOPs / peak of the compute type and unit, bytes / memory bandwidth)
  lost     GPU time less ideal time, 0 for calls faster than it: what a faster kernel could save
           at most
  roof     ideal time by GPU time; na if less than 90 % of the time has an ideal time
  bound    the larger term; latency if most of the time is in kernels under 10 us that have fewer
           blocks than the GPU has multiprocessors, or an ideal time under 2 us, and the group takes
           over twice its ideal time
  flag     no cost: FLOPs and bytes unknown. partial cost: some unknown, or one of the two; lost is
           then an upper bound. cost too high: the FLOPs or bytes of the model exceed what the GPU
           can do in this time, even from its cache; too short: less time than the clock resolves;
           both have no ideal time. no peak: peak or bandwidth unknown (--gpu, --peak). no roof:
           communication, copies between host and GPU. above roof: faster than the peaks; the data
           is in cache, or the algorithm needs fewer operations (Winograd).

Rows of --by op or layer add up ideal times of such groups.

$ fastprof roofline owl.json.gz --limit 4 -w 96
dir    op       shape          calls  kernels  gpu(ms)  step(ms)  ideal(ms)  lost(ms)  bound
fprop  softmax  [16,5185,518…    120      120    262.4      52.5       61.6     200.8  bandwidth
fprop  bmm      B=16,M=5185,…    120      120    130.0      26.0       31.6      98.5  bandwidth
fprop  bmm      B=16,M=64,N=…    120      120     99.3      19.9       31.6      67.8  bandwidth
fprop  linear   M=1024,N=518…    480      960     10.5       2.1        5.3       5.2  compute
... 89 more rows
total                           4310     5165    566.8     113.3      159.8     392.4

  fastprof roofline --by layer --sort lost_ns --gpu H100 net.sqlite
  fastprof roofline --plot roof.svg net.sqlite
"""


def gpu_name(text: str) -> str:
    """The text of --gpu.

    Raises
    ------
    ReportError
        The table has no such GPU; the message names the nearest.
    """
    from fastprof.model.devices import checked_gpu

    return checked_gpu(text)


def _peak(text: str) -> str:
    from fastprof.model.devices import checked_peak

    return checked_peak(text)


def _bandwidth(text: str) -> float:
    from fastprof.model.devices import positive

    return positive("--bandwidth", text)


def _roof(text: str) -> str:
    if text not in ROOFS:
        raise ReportError(f"expected {' or '.join(ROOFS)}, found {text!r}")
    return text


def checked_plot(text: str) -> str:
    """The text of --plot.

    Raises
    ------
    ReportError
        Its suffix is not that of a format.
    """
    if not text.lower().endswith((".png", ".svg")):
        raise ReportError(f"expected a file ending in .png or .svg, found {text!r}")
    return text


ROOF: Final = Option(
    "roof",
    "peak, or practical: 80 % of the tensor-core peak and 90 % of the bandwidth, the best shares "
    "of real kernels (default: peak)",
    "ROOF",
    _roof,
    "peak",
)
PLOT: Final = Option("plot", "also draw a chart, needs matplotlib", "FILE.png|svg", checked_plot)
PEAKS: Final = (
    Option("gpu", "use this GPU's peaks; fastprof devices lists the names", "NAME", gpu_name),
    Option(
        "peak",
        "peaks in TFLOP/s and bandwidth in GB/s, e.g. bf16=312,fp32=19.5,bw=1555",
        "FIGURES",
        _peak,
    ),
    Option("bandwidth", "memory bandwidth in GB/s", "GB/s", _bandwidth),
)
