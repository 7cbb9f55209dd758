"""The headings, options and help of `kernel`. Imports no numpy, for `--help`."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.find.columns import AT, IDX, KERNELS, START, kernel_number
from fastprof.analysis.registry import Option
from fastprof.analysis.roofline.columns import PEAKS
from fastprof.errors import ReportError
from fastprof.model.heading import Heading

NEIGHBOURS: Final = 3
_MOST: Final = 50


def _neighbours(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _MOST:
        raise ReportError(f"expected a number of neighbours up to {_MOST}, found {text!r}")
    return int(text)


OPTIONS: Final = (
    Option(
        "idx",
        "number of the kernel, as fastprof find and fastprof prof print it (default: the longest)",
        "IDX",
        kernel_number,
        default=(),
        is_positional=True,
    ),
    Option(
        "neighbours",
        f"kernels to list before and after it on its stream (default: {NEIGHBOURS})",
        "N",
        _neighbours,
        NEIGHBOURS,
    ),
    *PEAKS,
)

BEFORE, THIS, AFTER, BESIDE = "before", "this", "after", "beside"
_KEYS: Final = frozenset({"kernel", "op", "shape", "layer", "stream", "device"})
COLUMNS: Final = (
    Heading(
        "what", "", "", "this kernel, before or after it on its stream, or beside it on another"
    ),
    IDX,
    AT,
    START,
    Heading("gap_ns", "gap", "ns", "from the end of the work before it on its stream"),
    Heading("gpu_ns", "gpu", "ns", "GPU time"),
    Heading("overlap_ns", "overlap", "ns", "time in which it runs beside this kernel"),
    *(heading for heading in KERNELS if heading.key in _KEYS),
)

DESCRIPTION: Final = """\
One kernel, copy or memset explained: its launch, operator, shapes, layer and
source line, its cost against the roof, how it compares with others of its name,
what it waited for, and what runs around it. The number is `idx` of fastprof find.

  fastprof kernel net.sqlite 42
  fastprof kernel net.sqlite 42 --neighbours 5 --json
"""
