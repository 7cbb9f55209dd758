"""The table of columns: help texts, `-c`, headers, widths and kinds of lists all come from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fastprof.errors import UnknownColumnError


def joined(separator: str) -> Callable[[Iterable[str]], str]:
    """Make a function that joins texts, and says `-` when nothing comes out."""
    return lambda parts: separator.join(parts) or "-"


def last_frame(frames: tuple[str, ...]) -> str:
    """The last frame without its directory: `/a/train.py:310 step` becomes `train.py:310 step`."""
    return re.split(r"[/\\]", frames[-1])[-1] if frames else "-"


@dataclass(frozen=True)
class ReportColumn:
    """One column that a report can have.

    Attributes
    ----------
    key : str
        Its name in `-c`, in JSON and in Python.
    header : str
        Its name in the header line.
    kind : "int" or "str"
        Numbers stand on the right of an aligned column and are never cut.
    width : int
        The least width of an aligned column.
    about : str
        One line of help.
    text : callable
        Turns a value of the column, where that is not a number, into the text of its cell.
    short : callable, optional
        The same for aligned columns, where room is scarce.
    is_list : bool
        Whether its values are tuples of texts.
    keeps_end : bool
        Whether an aligned column cuts its texts on the left: paths tell most at their end.
    is_long : bool
        Whether an aligned column takes of what is left of the width, where neither kernel nor
        params is there to take it.
    """

    key: str
    header: str
    kind: Literal["int", "str"]
    width: int
    about: str
    text: Callable[[Any], str] = str
    short: Callable[[Any], str] | None = None
    is_list: bool = False
    keeps_end: bool = False
    is_long: bool = False


def _path(key: str, header: str, width: int, about: str, **further: Any) -> ReportColumn:
    """Text that is cut on the left."""
    return ReportColumn(key, header, "str", width, about, keeps_end=True, is_long=True, **further)


def _names(key: str, header: str, width: int, about: str, **further: Any) -> ReportColumn:
    """Names, outermost first."""
    return _path(key, header, width, about, text=joined(":"), is_list=True, **further)


def _traced(key: str, header: str, kind: Literal["int", "str"], about: str) -> ReportColumn:
    """What only a trace tells; as wide as its numbers, or its header."""
    return ReportColumn(key, header, kind, max(len(header), 12), about)


COLUMNS = (
    ReportColumn("idx", "Idx", "int", 7, "number of the kernel, from 1"),
    ReportColumn("seq", "SeqId", "str", 7, "PyTorch sequence number that links both directions"),
    ReportColumn("altseq", "AltSeqId", "str", 7, "the other sequence numbers around the kernel"),
    ReportColumn("tid", "TId", "int", 12, "thread that launched the kernel"),
    _names("layer", "Layer", 10, "names of the layers around it"),
    _path(
        "trace",
        "Trace",
        25,
        "source lines of the call",
        text=joined(","),
        short=last_frame,
        is_list=True,
    ),
    ReportColumn("dir", "Direction", "str", 5, "fprop, bprop or na"),
    ReportColumn("sub", "Sub", "int", 3, "number of the kernel within its call, from 0"),
    ReportColumn("mod", "Module", "str", 15, "module of the called function"),
    ReportColumn("op", "Op", "str", 15, "name of the called function"),
    ReportColumn("kernel", "Kernel", "str", 0, "short name of the kernel"),
    ReportColumn("params", "Params", "str", 0, "shapes and types of the call"),
    ReportColumn("sil", "Sil(ns)", "int", 10, "time on the GPU in ns"),
    ReportColumn("tc", "TC", "str", 2, "tensor cores: 1 used, 0 possible but not used, - no use"),
    ReportColumn("device", "Device", "int", 3, "number of the GPU"),
    ReportColumn("stream", "Stream", "int", 3, "number of the stream"),
    ReportColumn("grid", "Grid", "str", 12, "grid size, x,y,z"),
    ReportColumn("block", "Block", "str", 12, "block size, x,y,z"),
    ReportColumn("flops", "FLOPs", "int", 12, "floating point operations, FMA = 2"),
    ReportColumn("bytes", "Bytes", "int", 12, "bytes read and written"),
    ReportColumn("tc_reason", "TCReason", "str", 20, "why tc is 0, and what would help"),
    ReportColumn("exact", "Exact", "int", 5, "0 where flops or bytes are estimates, else 1"),
    _path("line", "Line", 25, "last source line of the call that is yours (--mine)"),
    _path("library_line", "LibraryLine", 25, "last source line of the call that is not torch's"),
    ReportColumn("name", "Name", "str", 25, "full name of the kernel", is_long=True),
)
# What only a trace tells, and dict lines do not.
TRACE_COLUMNS = (
    _traced("start", "Start(ns)", "int", "start on the GPU, on the trace's clock"),
    _traced("end", "End(ns)", "int", "end on the GPU"),
    _traced("kind", "Kind", "str", "kernel, graph, memcpy or memset"),
    _traced("pid", "PId", "int", "process that launched it"),
    _traced("context", "Context", "int", "CUDA context"),
    _traced("correlation", "Correlation", "int", "correlation id, unique in its process"),
    _traced("launch", "Launch", "str", "API call that launched it"),
    _traced("launch_start", "LaunchStart(ns)", "int", "start of that call"),
    _traced("registers", "Registers", "int", "registers of a thread"),
    _traced("shared_memory", "SharedMemory", "int", "bytes of shared memory of a block"),
    _traced("graph_id", "GraphId", "int", "CUDA graph that it is of"),
    _traced("graph_node", "GraphNode", "int", "node of that graph"),
    _names("ranges", "Ranges", 25, "ranges of your own around the call"),
    _names("launch_ranges", "LaunchRanges", 25, "the same around the launch"),
    _names("phases", "Phases", 25, "ranges that end on another thread"),
    _traced("phase", "Phase", "str", "forward, backward, recompute, optimizer, ..."),
    _traced("path", "Path", "int", "node of the call-path tree"),
    _traced("copied", "Copied", "int", "bytes of a copy or memset (--all)"),
    _traced("copy_direction", "CopyDirection", "str", "HtoD, DtoH, DtoD, ... (--all)"),
    _traced("damaged", "Damaged", "int", "1 where the time in the file cannot be true"),
)  # fmt: skip

DEFAULT_KEYS = "idx,dir,sub,mod,op,kernel,params,sil"

_BY_KEY = {column.key: column for column in COLUMNS + TRACE_COLUMNS}


def select(keys: str | Iterable[str]) -> list[ReportColumn]:
    """Find the columns of `-c`: keys separated by commas, or the keys themselves.

    Raises
    ------
    UnknownColumnError
        A key is not in the table, or there is none.
    """
    names = [key.strip() for key in keys.split(",")] if isinstance(keys, str) else list(keys)
    unknown = [name for name in names if name not in _BY_KEY]
    if unknown or not names:
        what = ", ".join(map(repr, unknown)) or "(none)"
        raise UnknownColumnError(f"unknown column {what}; valid columns: {','.join(_BY_KEY)}")
    return [_BY_KEY[name] for name in names]
