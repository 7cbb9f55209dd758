"""The built-in reports. Imports no numpy: the command line lists them for `--help`.

Each is described by a function of its name, which imports its columns and options.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fastprof.analysis.options import CPU, DEPTH, STEPS, WHERE, by, choice
from fastprof.analysis.registry import Option, Report

BUILT_IN: Final[dict[str, Callable[[], Report]]] = {}


def built_in(make: Callable[[], Report]) -> Callable[[], Report]:
    """Add a report of the name of the function, which is called when the report is needed."""
    BUILT_IN[make.__name__] = cache(make)
    return make


def _report(package: str, about: str, headings: Any, **more: Any) -> Report:
    """The report of a package of `fastprof.analysis`, by the names in its module of columns."""
    name = more.pop("name", package)
    facts = {
        "description": getattr(headings, "DESCRIPTION", ""),
        "columns": getattr(headings, "COLUMNS", ()),
        "function": f"fastprof.analysis.{package}.report:{name}",
        "limit": 20,
    }
    return Report(name=name, about=about, **{**facts, **more})


@built_in
def overview() -> Report:
    from fastprof.analysis.overview import columns
    from fastprof.analysis.roofline.columns import PEAKS

    about = "the first look, in one screen: fastprof FILE does the same"
    needs = ("host", "costs", "contents")
    options = (STEPS, *PEAKS)
    return _report("overview", about, columns, options=options, limit=columns.ROWS, needs=needs)


@built_in
def summary() -> Report:
    from fastprof.analysis.roofline.columns import PEAKS
    from fastprof.analysis.summary import columns

    return _report(
        "summary",
        "where the GPU time goes: by operator, layer, line, shape, phase, ...",
        columns,
        description=SUMMARY,
        columns=(*columns.MEASURES, *columns.CPU_MEASURES),
        options=(by("dir,op; range,kind without operators"), STEPS, WHERE, CPU, *PEAKS),
        needs=("costs", "contents"),
    )


@built_in
def steps() -> Report:
    from fastprof.analysis.roofline.columns import PEAKS
    from fastprof.analysis.steps import columns

    about = "the length of each step, what the GPU does in it, and what differs in outliers"
    return _report("steps", about, columns, options=(STEPS, WHERE, *PEAKS), needs=("host",))


@built_in
def idle() -> Report:
    from fastprof.analysis.idle import columns

    about = "why the GPU waits: causes, where to look, the longest gaps"
    options = columns.OPTIONS
    return _report("idle", about, columns, columns=columns.ALL, options=options, needs=("host",))


@built_in
def layers() -> Report:
    from fastprof.analysis.layers import columns
    from fastprof.analysis.roofline.columns import PEAKS

    options = (
        DEPTH,
        Option("fold", "repeated layers, such as layers.0 to layers.31, are one row"),
        Option("flat", "in order of own time, not as a tree"),
        STEPS,
        WHERE,
        *PEAKS,
    )
    about, needs = "the module tree with GPU time, forward and backward", ("costs", "contents")
    more = {"description": LAYERS, "options": options, "limit": None, "needs": needs}
    return _report("layers", about, columns, **more)


@built_in
def lines() -> Report:
    from fastprof.analysis.lines import columns
    from fastprof.analysis.roofline.columns import PEAKS

    options = (
        Option(
            "files",
            "source files to list, your own or not; glob patterns of the end of the path",
            "SOURCE",
            is_positional=True,
        ),
        choice("by", "a row per source line or per function", ("line", "function")),
        Option("function", "only functions whose name matches a glob pattern", "NAME"),
        Option("source", "folder with the source files, for the text of the lines", "DIR"),
        STEPS,
        WHERE,
        *PEAKS,
    )
    about = "your source lines with the GPU time that they launch, forward and backward"
    more = {"description": LINES, "options": options, "limit": None}
    return _report("lines", about, columns, needs=("costs", "contents"), **more)


@built_in
def ranges() -> Report:
    from fastprof.analysis.ranges import columns

    return _report(
        "ranges",
        "your own ranges: time on CPU and GPU, with backward, and idle inside",
        columns,
        description=RANGES,
        function="fastprof.analysis.ranges.report:ranges_table",
        options=(Option("flat", "in order of own GPU time, not as a tree"), WHERE),
        limit=None,
        needs=("host",),
    )


@built_in
def roofline() -> Report:
    from fastprof.analysis.roofline import columns

    about = "GPU time against the time at the GPU's peak rates: what is lost, and where"
    options = (by("dir,op,shape"), STEPS, WHERE, columns.ROOF, *columns.PEAKS, columns.PLOT)
    more = {"columns": columns.ROOFLINE, "options": options, "needs": ("costs", "contents")}
    return _report("roofline", about, columns, **more)


@built_in
def overlap() -> Report:
    from fastprof.analysis.overlap import columns

    keys = by("device,collective,process_group,group_size,message_bytes,message_type,stream")
    about = "communication hidden behind compute and exposed, bandwidth of collectives"
    return _report("overlap", about, columns, options=(keys, STEPS, WHERE))


@built_in
def launches() -> Report:
    from fastprof.analysis.launches import columns

    options = (by("op; kind without operators"), STEPS, WHERE)
    about = "how launch-bound the work is: launch calls, latency and queue of the GPU"
    return _report("launches", about, columns, options=options, needs=("host",))


@built_in
def counters() -> Report:
    from fastprof.analysis.counters import columns

    options = (by("kernel"), WHERE)
    about = "hardware counters of kernels, and the bytes that they moved"
    return _report("counters", about, columns, options=options)


@built_in
def copies() -> Report:
    from fastprof.analysis.copies import columns

    options = (by("direction,memory,size_class"), STEPS, WHERE, columns.BUS)
    about = "memory copies and memsets: rate against the bus, and what waits for them"
    return _report("copies", about, columns, options=options, needs=("host",))


@built_in
def serving() -> Report:
    from fastprof.analysis.roofline.columns import PEAKS
    from fastprof.analysis.serving import columns

    about = "serving engines: tokens per second, time per token by stage, idle between iterations"
    more = {
        "columns": (*columns.STAGES, *columns.IDLE),
        "options": (columns.BY_CAUSE, *PEAKS),
        "limit": None,
    }
    return _report("serving", about, columns, needs=("host", "costs", "contents"), **more)


@built_in
def experts() -> Report:
    from fastprof.analysis.experts import columns

    about = "mixtures of experts by layer: tokens, time, and how even the rows are"
    return _report("experts", about, columns, options=(STEPS, WHERE), needs=("host", "costs"))


@built_in
def memory() -> Report:
    from fastprof.analysis.memory import columns

    options = (columns.BY, columns.DEVICE, STEPS, WHERE)
    about = "peak memory, the blocks live at the peak and their code; also of torch snapshots"
    of_snapshot = "fastprof.analysis.memory.snapshot:memory_snapshot"
    return _report("memory", about, columns, options=options, of_snapshot=of_snapshot)


@built_in
def advise() -> Report:
    from fastprof.analysis.advice import columns
    from fastprof.analysis.roofline.columns import PEAKS

    options = (columns.MIN, columns.FAIL_ABOVE, STEPS, *PEAKS)
    about = "what to change to make a step shorter, the largest saving first"
    needs = ("host", "costs", "contents")
    return _report("advice", about, columns, name="advise", options=options, needs=needs)


@built_in
def whatif() -> Report:
    from fastprof.analysis.replay import columns

    about = "what a step would take if some of it were faster or absent"
    more = {"options": columns.OPTIONS, "limit": 40, "needs": ("host",)}
    return _report("replay", about, columns, name="whatif", **more)


@built_in
def find() -> Report:
    from fastprof.analysis.find import columns

    about = "kernels, calls, ranges and API calls one by one: the n-th, the longest, those between"
    return _report("find", about, columns, options=columns.OPTIONS, needs=("host", "costs"))


@built_in
def kernel() -> Report:
    from fastprof.analysis.kernel import columns

    about = "one kernel explained: launch, operator, shapes, cost, neighbours, what it waited for"
    more = {"options": columns.OPTIONS, "limit": None, "needs": ("host", "costs")}
    return _report("kernel", about, columns, **more)


@built_in
def stats() -> Report:
    from fastprof.analysis.stats import columns

    names = Option(
        "names",
        f"tables: {', '.join(columns.TABLES)} (default: the first five)",
        "NAME",
        columns.table_name,
        default=(),
        is_positional=True,
    )
    return _report("stats", "the tables of nsys stats, from any trace", columns, options=(names,))


SUMMARY: Final = """\
Where the GPU time goes. The lines above the table describe a step, if steps are
known: its length, how long the GPU works, MFU, phases and kinds of work. Rows are
groups of kernels that agree in all keys of --by; --where selects work.

`gpu` is the time of the whole capture, of all GPUs. `step` is the mean per step
and GPU over the counted steps, so that it compares with the length of a step;
time(%) then is its share, else that of `gpu`. Work that the counted steps leave
out, and time that counts twice as kernels overlap on streams, are notes.

$ fastprof summary resnet50.json.gz --limit 4 -w 80
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 174.8 ms ± 5.7 (median 176.3 ms), 1516 kernels; GPU busy 100.6 ms, 57.5%,
  idle 74.24 ms
MFU 28.1% of fp32 peak, 50.2% of the time with kernels (777.6 GFLOP per step of
  176.3 ms)

phase      step(ms)  time(%)  kernels    kind           step(ms)  time(%)
backward      64.35     64.0     3228    convolution       58.38     58.0
forward       32.76     32.6     1680    normalisation     16.03     15.9
copy           2.00      2.0      324    elementwise       15.73     15.6
optimizer      1.31      1.3     2898    gemm               7.41      7.4
zero_grad      0.17      0.2      966    memcpy             1.92      1.9
                                         reduction          0.92      0.9
                                         copy               0.10      0.1
                                         memset             0.09      0.1
                                         ... 1 more rows

dir    op          calls  kernels  gpu(ms)  step(ms)  time(%)  roof(%)  lost(ms)
bprop  conv2d        318     1806    273.4      45.6     45.3     72.1      76.3
fprop  conv2d        318      606    126.6      21.1     21.0     79.0      26.6
bprop  batch_norm    318      318     61.9      10.3     10.3     76.6      14.5
fprop  batch_norm    318      318     34.2       5.7      5.7     83.1       5.8
... 19 more rows
total               7272     9096    603.6     100.6                       138.6
"""

LAYERS: Final = """\
The module tree with GPU time. A layer contains the layers inside it; `own` is
the rest. A backward kernel counts to the layer of its forward call, recomputed
work to the layer that it recomputes. Layers are in order of execution; a module
that runs several times is one row.

$ fastprof layers resnet18.json.gz --depth 2
layer                  forward(ms)  backward(ms)  gpu(ms)  time(%)  roof(%)
ResNet_0                    115.99        242.63   358.63     99.9     17.1
  Conv2d_0                    9.90          8.78    18.68      5.2      9.8
  BatchNorm2d_0              11.33         36.10    47.42     13.2     13.0
  ReLU_0                      2.07          2.66     4.73      1.3     81.5
  MaxPool2d_0                 5.47         14.92    20.39      5.7     17.0
  Sequential_0               34.71         83.25   117.96     32.9     15.1
  Sequential_1               24.52         51.33    75.85     21.1     16.8
  Sequential_3               14.99         26.27    41.26     11.5     21.0
  Sequential_5               12.70         19.08    31.78      8.9     21.1
  AdaptiveAvgPool2d_0         0.26          0.08     0.34      0.1     14.6
  Linear_0                    0.04          0.17     0.21      0.1      3.8
(no layer)                    0.10          0.05     0.31      0.1       na
total                       116.09        242.68   358.94              17.1
"""

LINES: Final = """\
Your source lines, with the GPU time of all that they call; `own` is without the
inner lines of the table. A backward kernel counts to the lines of its forward
call. Functions and files are in order of time. Below a line that takes nearly
all, such as model(x), the lines of libraries are listed too. The text of the
lines is shown if the source files exist at their recorded paths or below
--source DIR. SOURCE lists files of your choice, of libraries too, and all lines
of their functions. --by function lists functions with own and cumulative time.

$ fastprof lines resnet50.json.gz resnet50_profiler_api.py
line    forward(ms)  backward(ms)  other(ms)  gpu(ms)  own(ms)  time(%)  roof(%)
resnet50_profiler_api.py   584.8 ms, 96.9 %
    44         0.00          0.00      11.49    11.49    11.49      1.9       na
    46       196.47        367.76       0.00   564.23   564.23     93.5     76.4
    47         0.06          0.07       0.00     0.13     0.13      0.0      4.3
    49         0.00          0.00       1.03     1.03     1.03      0.2     68.8
    50         0.01          0.00       0.00     0.01     0.01      0.0       na
    51         0.00          0.00       7.88     7.88     7.88      1.3     69.2
total        196.53        367.83      20.40   584.77   584.77              76.2
"""

RANGES: Final = """\
Your own ranges: of record_function, NVTX and annotations, also without GPU work.
Ranges whose names differ in numbers are one row. `gpu` is the time of work launched
inside, on the thread of the range or on autograd's, for which it waits: `backward()`
has its pass. `with backward` adds the backward work of the calls inside: `forward` has
it too, so rows beside each other can add up to more than the range around them.

$ fastprof ranges train.json.gz -c range,count,wall_ns,gpu_ns,with_backward_ns,idle_ns
range                            count  wall(ms)  gpu(ms)  with backward(ms)  idle(ms)
ProfilerStep#*                       5    394.14   472.45             472.45      7.57
  ## forward ##                      5    145.94   150.44             461.53      3.91
    DistributedDataParallel.f…       5    145.37   150.44             461.53      3.91
  ## backward ##                     5    240.67   316.48             316.48      3.62
  ## optimizer ##                    5      4.83     5.53               5.53      0.03
    Optimizer.step#SGD.step          5      4.67     5.53               5.53      0.03
"""
