"""FLOPs and bytes of placing elements along one dimension by an index: one formula and a table.

In place, the index and the source are read and each element written, and also read if combined. Out
of place, the entire tensor is read and written.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import replaced
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.indexing.picking import picked, sized_index
from fastprof.ops.parameters import Number
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import byte_count, elements, tensor_bytes
from fastprof.ops.traffic import texts

Source = Tensor | Number


def placed(
    x: Tensor,
    index_bytes: int | None,
    count: int | None,
    source: Tensor | None,
    steps: int,
    *,
    in_place: bool,
) -> Cost:
    """`count` elements put into x by an index.

    Parameters
    ----------
    source : Tensor or None
        The elements to place; None for a number.
    steps : int
        FLOPs per element: 0 if it replaces the old one.
    """
    read = 0 if source is None else sized_index(count, source.dtype)
    own = [sized_index(count, x.dtype)] * (2 if steps else 1)
    if not in_place:
        own = [tensor_bytes(x), byte_count(elements(x.shape), x.dtype)]
    flops = None if count is None else count * steps
    return Cost(flops if steps else 0, add_known(index_bytes, read, *own))


class Counted(Enum):
    """The argument that determines the number of placed elements."""

    INDEX = "elements of the index"
    SOURCE = "elements of the source"
    SLICES = "as many slices of x as the index has elements"


# FLOPs per element by the argument reduce=; a mean also counts elements.
_STEPS: Final = {
    None: 0,
    "add": 1,
    "sum": 1,
    "multiply": 1,
    "prod": 1,
    "amax": 1,
    "amin": 1,
    "mean": 2,
}


class _Row(NamedTuple):
    name: str
    python: str
    aten: tuple[str, ...]
    counted: Counted
    adds: bool  # whether it always adds
    what: str


_ROWS: Final = (
    _Row(
        "scatter",
        "x, dim, index, src=source, reduce=reduce, value=value",
        ("x, dim, index, source, reduce, ...", "x, dim, index, source, ..."),
        Counted.INDEX,
        False,
        "Elements of a source, or a number, put into x [..] along dim by index [..].",
    ),
    _Row(
        "scatter_add",
        "x, dim, index, src=source, ...",
        ("x, dim, index, source, ...",),
        Counted.INDEX,
        True,
        "Elements of a source added to x [..] along dim by index [..].",
    ),
    _Row(
        "scatter_reduce",
        "x, dim, index, src=source, reduce, ...",
        ("x, dim, index, source, reduce, ...",),
        Counted.INDEX,
        False,
        "Elements of a source combined with those of x [..] along dim by index [..].",
    ),
    _Row(
        "index_add",
        "x, dim, index, source, ...",
        ("x, dim, index, source, ...",),
        Counted.SOURCE,
        True,
        "Slices of a source added to those of x [..] along dim by index [k].",
    ),
    _Row(
        "index_copy",
        "x, dim, index, source, ...",
        ("x, dim, index, source, ...",),
        Counted.SOURCE,
        False,
        "Slices of a source put into x [..] along dim by index [k].",
    ),
    _Row(
        "index_reduce",
        "x, dim, index, source, reduce, ...",
        ("x, dim, index, source, reduce, ...",),
        Counted.SOURCE,
        False,
        "Slices of a source combined with those of x [..] along dim by index [k].",
    ),
    _Row(
        "index_fill",
        "x, dim, index, value, ...",
        ("x, dim, index, value, ...",),
        Counted.SLICES,
        False,
        "A number put into the slices of x [..] along dim by index [k].",
    ),
    _Row(
        "put",
        "x, index, source, accumulate",
        ("x, index, source, accumulate, ...",),
        Counted.INDEX,
        False,
        "Elements of a source put into x, as one row, by index [..], or added to it.",
    ),
)

_DOCUMENTATION: Final = """{what}

    FLOPs: an operation for each combined element (for a mean 2, and a division for each element of
    x), else none; backward none (products, extremes and means are not modelled).
    Bytes: {bytes};
    backward the gradient of x with zeros for replaced elements (read and written) and that
    of the source picked from it.

    If the reduce operation is not recorded, one FLOP per element is counted, an estimate.
    """
_COPIED: Final = "x, index and source read, the new tensor written"
_IN_PLACE: Final = "index and source read, elements of x (if combined, read and) written"


def _register(row: _Row, in_place: bool) -> None:
    def formula(
        x: Tensor,
        index: Tensor,
        source: Source | None = None,
        reduce: str | Unknown | None = None,
        dim: int | Unknown = UNKNOWN,
        value: Source | None = None,
        accumulate: bool | Unknown = False,
        *,
        direction: str,
    ) -> tuple[Cost, str]:
        given = value if source is None else source
        given = given if isinstance(given, Tensor) and given.shape else None
        params = texts(x, index, given)
        count = _count(row.counted, x, index, given, dim)
        if row.adds or accumulate is True:
            reduce = "add"
        unclear = isinstance(reduce, Unknown) or isinstance(accumulate, Unknown)
        named = "add" if isinstance(reduce, Unknown) or unclear else reduce
        if direction == "fprop":
            cost = _forward(x, index, given, count, named, in_place)
        elif unclear:
            raise CannotModel("the reduce operation is not in the capture")
        else:
            cost = _backward(x, index, given, count, named)
        return Cost(cost.flops, None if unclear else cost.bytes, not unclear), params

    name = f"{row.name}_" if in_place else row.name
    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = _DOCUMENTATION.format(what=row.what, bytes=_IN_PLACE if in_place else _COPIED)
    op(
        TORCH,
        f"{name}({row.python})",
        aten=tuple(f"{name}({arguments})" for arguments in row.aten),
    )(formula)


def _count(
    counted: Counted, x: Tensor, index: Tensor, source: Tensor | None, dim: int | Unknown
) -> int | None:
    if counted is Counted.INDEX:
        return elements(index.shape)
    if counted is Counted.SOURCE:
        return elements(source.shape) if source else 1
    return replaced(x.shape, dim, elements(index.shape))


def _forward(
    x: Tensor,
    index: Tensor,
    source: Tensor | None,
    count: int | None,
    reduce: str | None,
    in_place: bool,
) -> Cost:
    if reduce not in _STEPS:
        raise CannotModel(f"unknown reduction {reduce!r}")
    cost = placed(x, tensor_bytes(index), count, source, _STEPS[reduce], in_place=in_place)
    return cost + Cost(elements(x.shape), 0) if reduce == "mean" else cost


def _backward(
    x: Tensor, index: Tensor, source: Tensor | None, count: int | None, reduce: str | None
) -> Cost:
    if reduce not in (None, "add", "sum"):
        raise CannotModel(f"the backward pass of {reduce!r} is not modelled")
    cost = Cost(0, 0) if source is None else picked(x, tensor_bytes(index), count)
    if reduce is None:
        cost += placed(x, tensor_bytes(index), count, None, 0, in_place=False)
    return cost


for _row in _ROWS:
    for _in_place in (False, True):
        _register(_row, _in_place)
