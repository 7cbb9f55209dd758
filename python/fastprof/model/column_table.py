"""The columns of a profile, for reports, help texts, Arrow schemas and Python.

Imports no numpy: `fastprof --help` uses it.
"""

from __future__ import annotations

from typing import Final, Literal

from fastprof._system.classes import dataclass

ColumnKind = Literal["number", "triple", "numbers", "text", "texts"]


@dataclass(frozen=True)
class ColumnInfo:
    """One column of a profile.

    Parameters
    ----------
    key : str
        Its name in `-c`, in JSON and in Python.
    header : str
        Its name in the header line of a report.
    kind : str
        Type of a cell: "number", "triple" (x, y, z), "numbers" (a list; a single number or none
        where a trace links at most one), "text" or "texts" (a list of texts).
    width : int
        Minimum width in an aligned report.
    about : str
        One line of help.
    keeps_end : bool
        Aligned reports truncate its cells on the left, to keep the end of a path.
    is_long : bool
        Aligned reports give it a share of the spare width if neither kernel nor params is chosen.
    on_request : bool
        Not part of complete tables: needs the file read again, or is unknown in most traces.
    """

    key: str
    header: str
    kind: ColumnKind
    width: int
    about: str
    keeps_end: bool = False
    is_long: bool = False
    on_request: bool = False


COUNTER: Final = "counter:"  # with the name of a hardware counter, the key of its column


def counter_column(key: str) -> ColumnInfo:
    """The column of a hardware counter."""
    header = key.removeprefix(COUNTER)
    return ColumnInfo(key, header, "number", max(len(header), 12), "counter", on_request=True)


def _path(key: str, header: str, kind: ColumnKind, width: int, about: str) -> ColumnInfo:
    return ColumnInfo(key, header, kind, width, about, keeps_end=True, is_long=True)


def _traced(key: str, header: str, kind: ColumnKind, about: str) -> ColumnInfo:
    return ColumnInfo(key, header, kind, max(len(header), 12), about)


def _requested(key: str, header: str, kind: ColumnKind, about: str) -> ColumnInfo:
    return ColumnInfo(key, header, kind, max(len(header), 12), about, on_request=True)


COLUMNS: Final = (
    ColumnInfo("idx", "Idx", "number", 7, "number of the kernel, from 1"),
    ColumnInfo("seq", "SeqId", "numbers", 7, "autograd number that links forward and backward"),
    ColumnInfo("altseq", "AltSeqId", "numbers", 7, "the other autograd numbers around the kernel"),
    ColumnInfo("tid", "TId", "number", 12, "thread that launched the kernel"),
    _path("layer", "Layer", "texts", 10, "enclosing layers, outermost first"),
    _path("trace", "Trace", "texts", 25, "source lines of the call"),
    ColumnInfo("dir", "Direction", "text", 5, "fprop, bprop or na"),
    ColumnInfo("sub", "Sub", "number", 3, "index of the kernel in its call, from 0"),
    ColumnInfo("mod", "Module", "text", 15, "module of the called function"),
    ColumnInfo("op", "Op", "text", 15, "name of the called function"),
    ColumnInfo("kernel", "Kernel", "text", 0, "short name of the kernel"),
    ColumnInfo("params", "Params", "text", 0, "shapes and types of the call"),
    ColumnInfo("sil", "Sil(ns)", "number", 10, "GPU time in ns"),
    ColumnInfo("tc", "TC", "text", 2, "tensor cores: 1 used, 0 not used, - not applicable"),
    ColumnInfo("device", "Device", "number", 3, "GPU number"),
    ColumnInfo("stream", "Stream", "number", 3, "stream number"),
    ColumnInfo("grid", "Grid", "triple", 12, "grid size, x,y,z"),
    ColumnInfo("block", "Block", "triple", 12, "block size, x,y,z"),
    ColumnInfo("flops", "FLOPs", "number", 12, "floating point operations, FMA = 2"),
    ColumnInfo("bytes", "Bytes", "number", 12, "bytes read and written"),
    ColumnInfo("tc_reason", "TCReason", "text", 20, "why tc is 0, and the remedy"),
    ColumnInfo("exact", "Exact", "number", 5, "1 exact, 0 if flops or bytes are estimated"),
    _path("line", "Line", "text", 25, "innermost source line of your own code (--mine)"),
    _path("library_line", "LibraryLine", "text", 25, "innermost source line outside torch"),
    ColumnInfo("name", "Name", "text", 25, "full name of the kernel", is_long=True),
    ColumnInfo("class", "Class", "text", 13, "kind of kernel: gemm, elementwise, copy, ..."),
    ColumnInfo(
        "compute_type", "ComputeType", "text", 11, "arithmetic: fp32, tf32, fp16, bf16, ..."
    ),
    ColumnInfo(
        "helper", "Helper", "number", 6, "1 if it has no share of its call's cost, as a cast"
    ),
    ColumnInfo(
        "call", "Call", "number", 7, "number of its call, equal for all kernels of the call"
    ),
)
# Columns of traces only; dict lines lack them.
TRACE_COLUMNS: Final = (
    _traced("start", "Start(ns)", "number", "start on the GPU, on the trace's clock"),
    _traced("end", "End(ns)", "number", "end on the GPU"),
    _traced("kind", "Kind", "text", "kernel, graph, memcpy or memset"),
    _traced("pid", "PId", "number", "process that launched it"),
    _traced("context", "Context", "number", "CUDA context"),
    _traced("correlation", "Correlation", "number", "correlation id, unique in its process"),
    _traced("launch", "Launch", "text", "API call that launched it"),
    _traced("launch_start", "LaunchStart(ns)", "number", "start of the launching API call"),
    _requested("launch_end", "LaunchEnd(ns)", "number", "end of the launching API call"),
    _requested("collective", "Collective", "text", "collective of a communication kernel"),
    _requested("process_group", "ProcessGroup", "text", "process group of the collective"),
    _requested("group_size", "GroupSize", "number", "ranks of the process group"),
    _requested("message_bytes", "MessageBytes", "number", "size of the collective in bytes"),
    _requested("message_type", "MessageType", "text", "type of the collective's elements"),
    _requested("stage", "Stage", "text", "stage of a serving engine: prefill, decode, mixed, ..."),
    _requested("batch", "Batch", "text", "what the engine's iteration is of: 1 prefill + 3 decode"),
    _requested("tokens", "Tokens", "number", "tokens that the engine's iteration computes"),
    _requested("requests", "Requests", "number", "requests of the engine's iteration"),
    _requested("annotation", "Annotation", "text", "annotation of a node of a CUDA graph"),
    _requested("triton", "Triton", "text", "constants, warps and stages of a Triton kernel"),
    _traced("registers", "Registers", "number", "registers per thread"),
    _traced("shared_memory", "SharedMemory", "number", "shared memory per block in bytes"),
    _traced("graph_id", "GraphId", "number", "CUDA graph of the kernel"),
    _traced("graph_node", "GraphNode", "number", "node in the graph"),
    _path("ranges", "Ranges", "texts", 25, "your ranges around the call"),
    _path("launch_ranges", "LaunchRanges", "texts", 25, "your ranges around the launch"),
    _traced("home_range", "HomeRange", "number", "row of your innermost range around the call"),
    _traced("range", "Range", "number", "row of your innermost range around the launch"),
    _path("phases", "Phases", "texts", 25, "enclosing ranges that end on another thread"),
    _traced("phase", "Phase", "text", "forward, backward, recompute, optimizer, ..."),
    _traced("step", "Step", "number", "training step whose launch it is"),
    _traced("path", "Path", "number", "node of the call-path tree"),
    _traced("copied", "Copied", "number", "bytes of a copy or memset (--all)"),
    _traced("copy_direction", "CopyDirection", "text", "HtoD, DtoH, DtoD, ... (--all)"),
    _traced("copy_memory", "CopyMemory", "text", "memory: pageable -> device, ... (--all)"),
    _traced("damaged", "Damaged", "number", "1 if the recorded time is invalid"),
)

COLUMN_OF_KEY: Final = {column.key: column for column in COLUMNS + TRACE_COLUMNS}
