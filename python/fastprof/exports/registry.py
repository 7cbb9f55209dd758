"""The export formats and their options. Imports no numpy."""

from __future__ import annotations

from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof.analysis.options import STEPS, WHERE, choice
from fastprof.analysis.registry import Option, imported
from fastprof.errors import ReportError
from fastprof.model.heading import unknown_name

_TREES: Final = ("layers", "path", "lines", "stack")
_WEIGHTS: Final = ("ns", "flops", "bytes", "lost")
_OF_TREES: Final = ("costs", "contents")
TREE_OPTIONS: Final = (
    # A flame graph of layers would be one frame, `(no layer)`, in files without them.
    choice("stack", "what the stacks are made of", _TREES, "path for speedscope, else layers"),
    choice("weight", "their weight: GPU time in ns, FLOPs, bytes, or lost time in ns", _WEIGHTS),
    WHERE,
)
ROW_OPTIONS: Final = (
    Option("table", "write this report with its default options, not the kernels", "REPORT"),
)


@dataclass(frozen=True)
class Exporter:
    """An export format.

    Parameters
    ----------
    name : the value of `--to`
    about : one line of help
    suffix : the usual end of the file name
    function : "module:function", imported on first use: function(profile, file, **options) writes
        to a binary file
    options : keywords of the function
    is_text : whether a terminal can show the output
    needs : what is computed on other threads, see `fastprof.analysis.schedule`
    """

    name: str
    about: str
    suffix: str
    function: str
    options: tuple[Option, ...] = ()
    is_text: bool = False
    needs: tuple[str, ...] = ()

    def write(self, profile: Any, target: Any, **options: Any) -> None:
        """Call the function."""
        from fastprof.analysis.schedule import computing

        with computing(profile, self.needs):
            imported(self.function)(profile, target, **options)


_ALL: Final = (
    Exporter(
        "perfetto",
        "time line for ui.perfetto.dev and its trace processor (protobuf)",
        ".pftrace",
        "fastprof.exports.perfetto:write",
        (STEPS, WHERE),
    ),
    Exporter(
        "chrome",
        "trace of torch.profiler (Chrome JSON), for HTA, TensorBoard, trace viewers and fastprof",
        ".json",
        "fastprof.exports.chrome:write",
        (STEPS, WHERE),
        is_text=True,
    ),
    Exporter(
        "speedscope",
        "flame graph for speedscope.app: a profile for each GPU",
        ".speedscope.json",
        "fastprof.exports.speedscope:write",
        TREE_OPTIONS,
        is_text=True,
        needs=_OF_TREES,
    ),
    Exporter(
        "collapsed",
        "collapsed stacks for flamegraph.pl, inferno and others",
        ".folded",
        "fastprof.exports.collapsed:write",
        TREE_OPTIONS,
        is_text=True,
        needs=_OF_TREES,
    ),
    Exporter(
        "pstats",
        "GPU time by Python function, for python -m pstats, snakeviz and gprof2dot",
        ".pstats",
        "fastprof.exports.pstats:write",
        (WHERE,),
        needs=_OF_TREES,
    ),
    Exporter(
        "csv",
        "a row for each kernel with all columns, or with --table a report",
        ".csv",
        "fastprof.exports.rows:write_csv",
        ROW_OPTIONS,
        is_text=True,
    ),
    Exporter(
        "parquet",
        "the same, typed (needs pyarrow)",
        ".parquet",
        "fastprof.exports.rows:write_parquet",
        ROW_OPTIONS,
    ),
    Exporter(
        "sqlite",
        "a database: kernels with all columns, all reports, facts of the capture",
        ".sqlite",
        "fastprof.exports.sqlite:write",
    ),
    Exporter(
        "openmetrics",
        "figures of a mean step for Prometheus, Grafana and others (OpenMetrics)",
        ".prom",
        "fastprof.exports.openmetrics:write",
        (STEPS,),
        is_text=True,
        needs=_OF_TREES,
    ),
)
FORMATS: Final = {exporter.name: exporter for exporter in _ALL}
RUNS: Final = "perfetto"  # the format that has all ranks of a run


def find(name: str) -> Exporter:
    """The format of a name.

    Raises
    ------
    ReportError
        There is none; the message lists the formats.
    """
    if name not in FORMATS:
        raise ReportError(unknown_name("export format", name, list(FORMATS)))
    return FORMATS[name]
