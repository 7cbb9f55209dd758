"""The headings and help of `idle`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from textwrap import fill
from typing import Final

from fastprof.analysis.options import STEPS, choice
from fastprof.analysis.registry import Option
from fastprof.model.heading import Heading

BY: Final = ("cause", "step", "range", "line", "layer")


def _microseconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise ValueError(f"expected microseconds, 0 or more, found {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not int(text):
        raise ValueError(f"expected a positive number, found {text!r}")
    return int(text)


OPTIONS: Final = (
    Option("gaps", "list the N longest gaps", "N", _count),
    Option(
        "min", "gaps shorter than this are one row, `short gaps` (default: 1)", "US",
        _microseconds, 1.0,
    ),
    Option("data", "ranges that load data, in addition to those of data loaders", "REGEX"),
    choice(
        "by", "a row per cause, per step or range of the next work, or per line or layer where the "
        "host is, else of the next work", BY,
    ),
    STEPS,
)  # fmt: skip

_CAUSE: Final = Heading(
    "cause", "cause", "", "why the GPU waits; the causes are listed above", min_width=16
)
_DEVICE: Final = Heading("device", "GPU", "", "GPU number")
_PLACES: Final = (
    Heading(
        "call",
        "call",
        "",
        "API call or function of the operating system in which the host waits; for dependency, "
        "what the work waits for; for host-bound, the function in most CPU samples (nsys --sample)",
        rank=1,
        min_width=16,
    ),
    Heading("line", "line", "", "source line of your code", keeps_end=True, min_width=24),
    Heading("op", "op", "", "operator", rank=2),
    Heading("range", "range", "", "your innermost range, numbers folded", keeps_end=True, rank=3),
    Heading("layer", "layer", "", "layer", keeps_end=True, rank=4),
)

COLUMNS: Final = (
    _DEVICE,
    _CAUSE,
    Heading("step", "step", "", "with --by step: step of the next work"),
    Heading("ns", "idle", "ns", "time without GPU work; with --by cause, its part by the cause"),
    Heading("share", "time", "share", "share of the GPU's time line"),
    Heading("gaps", "gaps", "", "number of gaps; with --by cause, those it takes most of"),
    Heading("longest_ns", "longest", "ns", "longest of these gaps"),
    *_PLACES,
)

OF_GAPS: Final = (
    Heading("at_ns", "at", "ns", "start of the gap, from the first work of all GPUs", digits=6),
    Heading("start_ns", "start", "", "start of the gap on the trace's clock, ns", in_text=False),
    Heading("ns", "idle", "ns", "length of the gap"),
    _CAUSE,
    _DEVICE,
    Heading("before", "before", "", "kernel or copy that ends at the start of the gap", rank=6),
    Heading("after", "after", "", "kernel or copy that begins at its end", rank=5),
    Heading("step", "step", "", "step of the work after the gap", rank=7),
    *_PLACES,
)

ALL: Final = (
    *COLUMNS,
    *(heading for heading in OF_GAPS if heading.key not in {col.key for col in COLUMNS}),
)

# What the launching thread does before the launch of the next work.
BEFORE_LAUNCH: Final = {
    "data loading": "fetches a batch: DataLoader, Lightning, ranges of --data",
    "JIT compilation": "compiles code: torch.compile, Triton, Numba, NVRTC, linking",
    "code loading": "loads a module, a graph, a kernel at its first launch",
    "creation": "creates a stream, event, context or library handle",
    "allocation": "allocates or registers memory",
    "deallocation": "frees memory",
    "blocking copy": "copies and waits: .item(), .cpu(), pageable memory",
    "sync": "waits for the GPU. After a blocking copy or sync, up to 50 us count too: until the "
    "thread can launch again",
    "garbage collection": "collects Python's garbage (record_python_gc_info of torch.profiler)",
    "GIL": "waits for Python's interpreter lock (nsys --trace python-gil)",
    "other thread": "idle, while another thread of the process is active",
    "operating system": "waits in the operating system (nsys --trace osrt)",
    "off CPU": "does not run, in no such wait: preempted, stopped, in a page fault (nsys "
    "--cpuctxsw; with --trace osrt, waits in the operating system are told from it)",
    "launch-bound": "Python and operators, in gaps under 50 us",
    "host-bound": "Python and operators, in longer gaps",
}
# What happens from the launch on.
FROM_LAUNCH: Final = {
    "launch latency": "the GPU begins",
    "dependency": "queued: waits for an event, a copy or other work",
    "unknown": "the launch is not in the file",
    "page fault": "the CPU touched unified memory, which moves then (nsys "
    "--cuda-um-cpu-page-faults=true)",
}


def _list(causes: dict[str, str]) -> str:
    """A line for each cause, as wide as the description."""
    rows = (
        fill(text, 80, initial_indent=f"  {name:18}", subsequent_indent=" " * 20)
        for name, text in causes.items()
    )
    return "\n".join(rows)


DESCRIPTION: Final = f"""\
Why the GPU has no work. A gap is a time during which a GPU runs nothing on any
stream. `gaps` and `longest` count a gap to the cause that takes most of it.
Before the launch of the next work, by what the launching thread does:
{_list(BEFORE_LAUNCH)}
From the launch on:
{_list(FROM_LAUNCH)}
`line`, `op`, `range` and `layer` are open for most of a gap, or of the call in
which the host waits; from the launch on, those of the launch. They are `na` if
nothing is, or, for a cause, where that is most of its time.

$ fastprof idle resnet50.json.gz -w 80
GPU 0, 996.5 ms: compute 591.5 ms, exposed copies 12.03 ms, idle 392.9 ms, 39.4%
17.5% of the kernels start within 10 us of their launch (starved)

cause           idle(ms)  time(%)  gaps  longest(ms)  line
data loading       283.7     28.5     5        62.34  na
host-bound          52.9      5.3   408         2.05  …snet50_profiler_api.py:46
launch latency      29.0      2.9  7490         0.03  …snet50_profiler_api.py:46
launch-bound        25.8      2.6  1011         0.05  …snet50_profiler_api.py:49
blocking copy        1.5      0.2     6         0.09  …snet50_profiler_api.py:44
other thread         0.0      0.0     0           na  na
dependency           0.0      0.0     1         0.01  …snet50_profiler_api.py:46
total              392.9     39.4  8921
(too narrow for call, op, range)

$ fastprof idle resnet50.json.gz --gaps 2 -w 80 -c at_ns,ns,cause,after,range
 at(ms)  idle(ms)  cause         after         range
648.322      62.3  data loading  Memcpy_HtoD_  …leProcessDataLoaderIter.__next__
294.025      60.9  data loading  Memcpy_HtoD_  …leProcessDataLoaderIter.__next__
  total     123.3
"""
