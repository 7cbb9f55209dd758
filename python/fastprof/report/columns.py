"""The table of report columns: help texts, `-c`, headers and widths all come from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fastprof.errors import UnknownColumnError


def joined(separator: str) -> Callable[[Iterable[str]], str]:
    """Make a function that joins texts, and says `-` when nothing comes out."""
    return lambda parts: separator.join(parts) or "-"


def last_frame(frames: tuple[str, ...]) -> str:
    """File name and line of the last frame: `/a/train.py:310` becomes `train.py:310`."""
    return frames[-1].rsplit("/", 1)[-1] if frames else "-"


@dataclass(frozen=True)
class ReportColumn:
    """One column that a report can have.

    Attributes
    ----------
    key : str
        Its name in `-c` and in JSON.
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
    """

    key: str
    header: str
    kind: Literal["int", "str"]
    width: int
    about: str
    text: Callable[[Any], str] = str
    short: Callable[[Any], str] | None = None


COLUMNS = (
    ReportColumn("idx", "Idx", "int", 7, "number of the kernel, from 1"),
    ReportColumn("seq", "SeqId", "str", 7, "PyTorch sequence number that links both directions"),
    ReportColumn("altseq", "AltSeqId", "str", 7, "the other sequence numbers around the kernel"),
    ReportColumn("tid", "TId", "int", 12, "thread that launched the kernel"),
    ReportColumn("layer", "Layer", "str", 10, "names of the layers around it", joined(":")),
    ReportColumn("trace", "Trace", "str", 25, "source lines of the call", joined(","), last_frame),
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
)

DEFAULT_KEYS = "idx,dir,sub,mod,op,kernel,params,sil"

_BY_KEY = {column.key: column for column in COLUMNS}


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
