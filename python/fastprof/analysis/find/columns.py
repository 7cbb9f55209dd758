"""The headings, options and help of `find`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastprof._system.regex import regex
from fastprof.analysis.options import WHERE, choice
from fastprof.analysis.registry import Option
from fastprof.errors import ReportError
from fastprof.model.heading import Heading
from fastprof.model.numbers import nanoseconds

OF: Final = ("kernels", "calls", "ranges", "api")


def duration(text: str) -> int:
    """The ns of a duration such as 1ms.

    Raises
    ------
    ReportError
        It is none.
    """
    result = nanoseconds(text)
    if result is None:
        raise ReportError(f"expected a duration such as 1ms or 20us, found {text!r}")
    return result


def times_of(text: str) -> tuple[int | None, int | None]:
    """The times of A:B in ns since the first GPU work; None for one that is missing.

    Raises
    ------
    ReportError
        They are none, or in the wrong order.
    """
    first, colon, last = text.partition(":")
    begin, end = nanoseconds(first), nanoseconds(last)
    is_time = all(
        time is not None or not part.strip() for time, part in ((begin, first), (end, last))
    )
    if not colon or not is_time:
        raise ReportError(f"expected A:B with times such as 1.5s:4s or 200ms:, found {text!r}")
    if begin is not None and end is not None and begin >= end:
        raise ReportError(f"{text} ends before it begins")
    return begin, end


_NTH: Final = regex(r"(-?[0-9]{1,9})?(:(-?[0-9]{1,9})?)?")


def nth(text: str) -> slice:
    """The occurrences of N, M:N, M: or :N, counted from 1, or from the end if negative.

    Raises
    ------
    ReportError
        It is none of these.
    """
    match = _NTH.fullmatch(text.strip())
    first, last = (None, None) if match is None else (match[1], match[3])
    if match is None or "0" in (first, last) or (first is None and last is None):
        raise ReportError(f"expected an occurrence such as 3, -1 or 2:5, found {text!r}")
    if match[2] is None:
        last = first
    begin = None if first is None else int(first) - (int(first) > 0)
    end = None if last is None else int(last) + (int(last) < 0)
    return slice(begin, end or None)


def _checked(check: Callable[[str], object]) -> Callable[[str], str]:
    """A conversion that keeps the text, which the report reads again."""

    def convert(text: str) -> str:
        check(text)
        return text

    return convert


def kernel_number(text: str) -> int:
    """The number of a kernel, from 1.

    Raises
    ------
    ReportError
        It is no such number.
    """
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not int(text):
        raise ReportError(f"expected the number of a kernel, from 1, found {text!r}")
    return int(text)


OPTIONS: Final = (
    choice(
        "of",
        "what to find: kernels (with copies and memsets), calls of operators, ranges (with those "
        "of operators), or calls of the CUDA or HIP API",
        OF,
    ),
    WHERE,
    Option(
        "between",
        "only what is in progress between these times since the first GPU work, such as 1.5s:4s "
        "or 200ms:",
        "A:B",
        _checked(times_of),
    ),
    Option(
        "longer",
        "only what takes at least this long, such as 1ms or 20us",
        "TIME",
        _checked(duration),
    ),
    Option(
        "shorter",
        "only what takes less than this",
        "TIME",
        _checked(duration),
    ),
    Option("after", "only what begins after the kernel of this number", "N", kernel_number),
    Option("before", "only what begins before the kernel of this number", "N", kernel_number),
    Option(
        "nth",
        "only these occurrences of what is left, in order of start: 3, -1 for the last, 2:5",
        "N|M:N",
        _checked(nth),
    ),
)

N: Final = Heading("n", "n", "", "occurrence: number among what was found, in order of start")
AT: Final = Heading("at_ns", "at", "ns", "start, from the first GPU work", digits=7)
START: Final = Heading("start", "start", "", "start on the trace's clock, ns", in_text=False)
IDX: Final = Heading("idx", "idx", "", "number of the kernel, for fastprof kernel")
_GPU: Final = Heading("gpu_ns", "gpu", "ns", "GPU time")
_WALL: Final = Heading("wall_ns", "wall", "ns", "from its start to its end")
_PLACE: Final = (
    Heading("shape", "shape", "", "shapes and types of the call", keeps_start=True, rank=4),
    Heading("layer", "layer", "", "layer, with those around it", keeps_end=True, rank=5),
    Heading("line", "line", "", "innermost source line of your own code", keeps_end=True, rank=6),
    Heading("step", "step", "", "step", rank=2),
    Heading("device", "device", "", "GPU number", rank=2),
    Heading("stream", "stream", "", "stream", rank=1),
)
_MORE: Final = (
    Heading("dir", "dir", "", "fprop, bprop or na", in_text=False),
    Heading("phase", "phase", "", "forward, backward, optimizer, ...", in_text=False),
    Heading("kind", "kind", "", "kind of work: gemm, memcpy, ...", in_text=False),
    Heading("range", "range", "", "your ranges around the call, numbers folded", in_text=False),
)
KERNELS: Final = (
    N,
    IDX,
    AT,
    START,
    _GPU,
    Heading("kernel", "kernel", "", "short name of the kernel", min_width=20),
    Heading("op", "op", "", "operator", rank=3),
    *_PLACE,
    *_MORE,
    Heading("name", "name", "", "full name of the kernel", in_text=False),
    Heading("call", "call", "", "number of the operator's call", in_text=False),
)
CALLS: Final = (
    N,
    Heading("call", "call", "", "number of the operator's call"),
    AT,
    START,
    Heading("wall_ns", "wall", "ns", "from the start of its first kernel to the last end"),
    _GPU,
    Heading("kernels", "kernels", "", "its kernels among those selected"),
    Heading("op", "op", "", "operator"),
    *_PLACE,
    *_MORE,
    Heading("idx", "first", "", "number of its first kernel, for fastprof kernel"),
)
_HOST: Final = (
    Heading("thread", "thread", "", "thread id", rank=2),
    Heading("process", "process", "", "process id", rank=3),
)
RANGES: Final = (
    N,
    AT,
    START,
    _WALL,
    Heading(
        "gpu_ns", "gpu", "ns", "GPU time of work launched inside, also by autograd for its thread"
    ),
    Heading("kernels", "kernels", "", "kernels, copies and memsets launched inside"),
    Heading("name", "name", "", "name of the range", min_width=20),
    Heading("level", "level", "", "ranges of the thread around it"),
    Heading("parent", "inside", "", "name of the range around it", rank=4),
    Heading("kind", "kind", "", "kind of range: user, operators, layers, python, ...", rank=5),
    *_HOST,
)
API: Final = (
    N,
    AT,
    START,
    _WALL,
    Heading("name", "name", "", "name of the API call", min_width=20),
    Heading("kind", "kind", "", "launch, sync, alloc, load, create, copy or other"),
    Heading("idx", "launches", "", "number of the first kernel that it launches"),
    *_HOST,
)
_every = (*KERNELS, *CALLS, *RANGES, *API)
COLUMNS: Final = tuple({heading.key: heading for heading in reversed(_every)}.values())[::-1]

DESCRIPTION: Final = """\
Find kernels, copies, calls, ranges or API calls, one row each, in order of
start. --where selects by any key: operator, layer, shape, stream, kind of work,
step, ...; for ranges and API calls by name, kind, thread and process. --nth
takes occurrences of what is left; --sort gpu --limit 1 the longest.

  fastprof find net.sqlite --where op=linear --nth 3
  fastprof find net.sqlite --where kind=gemm --sort gpu --limit 5
  fastprof find net.sqlite --where stream=7 --longer 1ms --shorter 5ms
  fastprof find net.sqlite --between 10ms:12ms --after 100 --before 200
  fastprof find net.sqlite --of ranges --where 'name=*step*' --sort wall
  fastprof find net.sqlite --of api --where kind=sync --longer 20us
"""
