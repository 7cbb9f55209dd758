"""FLOPs and bytes of indexing: with several tensors, slices and masks, and along one dimension.

Picking elements along a dimension, the index and each picked element are read, the elements
written. An element picked twice is read twice, as in an embedding.

Placing them in place, the index and the source are read and each element written, and also read if
combined. Out of place, the entire tensor is read and written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import axis, replaced
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import canonical_type
from fastprof.ops.indexing.sorting import masked
from fastprof.ops.parameters import Flag, Int, Ints, Number, checked
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import broadcast, byte_count, elements, flat, fresh, moved, resized, texts

_SLICE: Final = re.compile(r"slice\((None|-?\d+), (None|-?\d+), (None|-?\d+)\)\Z")
_MASKS: Final = frozenset({"bool", "uint8"})

Indices = tuple[Tensor | None, ...]
# The items of an index; None if not recorded.
Items = tuple[Any, ...] | None


def chosen_elements(shape: tuple[int, ...], items: tuple[Any, ...]) -> int | None:
    """The number of elements an index selects; None if it depends on a mask or is unknown.

    Raises CannotModel when there are more of them than dimensions.

    Parameters
    ----------
    items : tuple
        Each a Tensor, an int, a list of them, the text of a slice, "Ellipsis" or None (a new
        dimension).
    """
    taken = sum(_dimensions(item) for item in items)
    if taken > len(shape):
        raise CannotModel(f"{len(items)} indices do not fit {shape}")
    whole, place, kept, unknown = len(shape) - taken, 0, 1, False
    together: list[tuple[int, ...]] = []
    for item in items:
        if item == "Ellipsis":
            kept *= elements(shape[place : place + whole])
            place, whole = place + whole, 0
        elif isinstance(item, Tensor):
            size = shape[place] if place < len(shape) else 1
            unknown |= _may_be_mask(item, size)
            together.append(item.shape)
            place += _dimensions(item)
        elif isinstance(item, tuple):
            together.append((len(item),))
            place += 1
        elif isinstance(item, str):
            kept *= _sliced(item, shape[place])
            place += 1
        elif item is not None:
            place += 1
    if unknown:
        return None
    return kept * elements(shape[place:]) * elements(broadcast(*together))


def _dimensions(item: Any) -> int:
    # Number of dimensions an item indexes.
    if isinstance(item, Tensor):
        return max(len(item.shape), 1) if canonical_type(item.dtype) in _MASKS else 1
    if isinstance(item, (bool, Unknown)):
        raise CannotModel(f"the index {item!r} is not modelled")
    if isinstance(item, tuple) and not all(type(each) is int for each in item):
        raise CannotModel("lists in an index are not modelled")
    if isinstance(item, str) and item != "Ellipsis":
        return 1
    return 1 if isinstance(item, (int, tuple)) else 0


def _may_be_mask(index: Tensor, size: int) -> bool:
    # A mask has the sizes of the masked dimensions, the only criterion in ranges without types.
    name = canonical_type(index.dtype)
    return name in _MASKS or (name is None and index.shape[:1] == (size,))


def _sliced(text: str, size: int) -> int:
    match = _SLICE.match(text)
    if match is None:
        raise CannotModel(f"the index {text!r} is not modelled")
    start, stop, step = (None if group == "None" else int(group) for group in match.groups())
    if step is not None and step <= 0:
        raise CannotModel(f"invalid step {step}")
    return len(range(*slice(start, stop, step).indices(size)))


def _index(items: Items) -> list[Tensor]:
    # The tensors of an index.
    return [item for item in items or () if isinstance(item, Tensor)]


def _recorded(indices: Indices | Unknown) -> Items:
    """Indices as in the brackets of x[..]; None if none is a tensor.

    ATen passes None for a dimension that is not indexed. An index has at least one tensor; if there
    is none, the trace does not record them.
    """
    if indices == ():
        raise CannotModel("no index among the arguments")
    if isinstance(indices, Unknown) or not any(isinstance(tensor, Tensor) for tensor in indices):
        return None
    return tuple("slice(None, None, None)" if tensor is None else tensor for tensor in indices)


def _read(x: Tensor, items: Items, direction: str, result: Tensor | Unknown) -> Answer:
    count = None if items is None else chosen_elements(x.shape, items)
    if count is None and isinstance(result, Tensor):
        count = elements(result.shape)
    pick = picked if direction == "fprop" else gradient_of_picked
    cost = pick(x, _index(items), count)
    return Cost(cost.flops, cost.bytes, items is not None), texts(x, *(items or ()))


@operators("""
    Elements of x picked by index tensors, broadcast, one for each of its leading dimensions.
    FLOPs: none; backward an addition for each picked element.
    Bytes: indices read, each picked element read and written; backward indices and gradient read,
    the gradient of x written.

    The number of elements selected by a mask is not recorded; without types, an index with the size
    of its dimension may be a mask. The number then follows from the size of the result, else it is
    unknown. If the profiler does not record the index tensors, their bytes are not counted, an
    estimate.
    (x, indices*): aten::index aten::_unsafe_index
""")
def index(
    x: Tensor, indices: Indices | Unknown, *, direction: str, result: Tensor | Unknown = UNKNOWN
) -> Answer:
    return _read(x, _recorded(indices), direction, result)


def _write(
    x: Tensor, items: Items, values: Source, adds: Flag, direction: str, in_place: bool
) -> Answer:
    source = values if isinstance(values, Tensor) and values.shape else None
    params = texts(x, *(items or ()), source)
    if source is not None and elements(source.shape) == 1:
        source = None
    masks = named = _index(items)
    is_mask = len(masks) == 1 and canonical_type(masks[0].dtype) in _MASKS
    if source is None and adds is False and is_mask:
        return masked(x, masks[0], direction), params  # as in torch
    selected = count = None if items is None else chosen_elements(x.shape, items)
    if count is None and source is not None:  # unknown indices or masks
        count = elements(source.shape)
    known = count is None or selected is not None
    if direction == "bprop":
        gradient = Cost(0, 0) if source is None else picked(x, named, count)
        if adds is not True:
            gradient += placed(x, named, count, None, 0, in_place=False)
        return Cost(gradient.flops, gradient.bytes, known), params
    cost = placed(x, named, count, source, 0 if adds is False else 1, in_place=in_place)
    moves = cost.bytes
    if source is not None and count is not None and elements(source.shape) < count:
        # A broadcast source is read at its own size.
        spared = byte_count(count - elements(source.shape), source.dtype)
        moves = None if moves is None or spared is None else moves - spared
    if isinstance(adds, Unknown):
        return Cost(cost.flops, None, False), params
    return Cost(cost.flops, moves, known), params


def _index_put(
    x: Tensor,
    indices: Indices | Unknown,
    values: Source,
    accumulate: Flag = False,
    *,
    in_place: bool,
    direction: str,
) -> Answer:
    return _write(x, _recorded(indices), values, accumulate, direction, in_place)


table_row("""
    Values put into (or added to) a copy of x by index tensors, broadcast.
    FLOPs: none, or an addition for each element with accumulate; backward none.
    Bytes: x, indices and values read, the copy written; backward the gradient of x with zeros (read
    and written) and the gradient of the values picked from it.

    The number of elements placed by a mask or by unrecorded indices is assumed to be the number of
    values, an estimate; for a single value it is unknown. One value with one mask is a masked_fill.
    If accumulate is not recorded, FLOPs are an estimate.
    (x, indices*, values, accumulate): index_put aten::_unsafe_index_put
    (x, indices*, values, accumulate, _): aten::_index_put_impl
""")(_index_put, in_place=False)

table_row("""
    Values put into (or added to) x by index tensors, broadcast.
    FLOPs: none, or an addition for each element with accumulate; backward none.
    Bytes: indices and values read, elements of x (read and) written; backward as for index_put.
    (x, indices*, values, accumulate): index_put_
    (x, indices*, values, accumulate, _): aten::_index_put_impl_
""")(_index_put, in_place=True)


def _items(given: Any) -> tuple[Any, ...]:
    # The items of an index; a list is one item.
    if isinstance(given, tuple) and all(type(value) is int for value in given) and len(given) > 1:
        return given
    items = given if isinstance(given, tuple) else (given,)
    return tuple(checked(item) if isinstance(item, Tensor) else item for item in items)


@operators("""
    x[...] with numbers, slices, tensors and masks.
    FLOPs: none; backward an addition for each element that tensors picked.
    Bytes: none for a view (numbers and slices); else as for index. Backward the gradient read, that
    of x written.

    A list of numbers as the only index is treated as a tuple of numbers.
    (x, between): torch.__getitem__
    (x, indices*): torch.__getitem__
""")
def getitem(
    x: Tensor,
    between: Any = UNKNOWN,
    indices: Indices = (),
    *,
    direction: str,
    result: Tensor | Unknown = UNKNOWN,
) -> Answer:
    items = _items(indices or between)
    if any(isinstance(item, (Tensor, tuple)) for item in items):
        return _read(x, items, direction, result)
    count = chosen_elements(x.shape, items)
    if direction == "fprop":  # numbers, slices, None and Ellipsis yield a view
        return Cost(0, 0), texts(x)
    return Cost(0, moved(flat(count, x.dtype), fresh(x))), texts(x)


@operators("""
    x[...] = values, with numbers, slices, tensors and masks.
    FLOPs: none.
    Bytes: indices and values read, elements of x written (by a mask and one value all of x read
    and written); backward the gradient of x with zeros and that of the values picked.
    (x, between, values): torch.__setitem__
    (x, indices*, values): torch.__setitem__
""")
def setitem(
    x: Tensor, values: Source, between: Any = UNKNOWN, indices: Indices = (), *, direction: str
) -> Answer:
    return _write(x, _items(indices or between), values, False, direction, in_place=True)


@operators("""
    Elements of x picked by index tensors, broadcast, a number where the mask is false.
    FLOPs: none.
    Bytes: mask and indices read, each picked element read and written.
    (x, mask, indices*, _): aten::_unsafe_masked_index
""")
def unsafe_masked_index(x: Tensor, mask: Tensor, indices: Indices) -> Answer:
    items = _recorded(indices)
    count = None if items is None else chosen_elements(x.shape, items)
    return picked(x, (mask, *_index(indices)), count), texts(x, mask, *indices)


@operators("""
    Values added to a copy of x by index tensors, broadcast, where the mask is true.
    FLOPs: an addition for each element of the values.
    Bytes: x, mask, indices and values read, the copy written.
    (x, mask, indices*, values): aten::_unsafe_masked_index_put_accumulate
""")
def unsafe_masked_index_put_accumulate(
    x: Tensor, mask: Tensor, indices: Indices, values: Tensor
) -> Answer:
    index = (mask, *_index(indices))
    cost = placed(x, index, elements(values.shape), values, 1, in_place=False)
    return cost, texts(x, mask, *indices, values)


def picked(x: Tensor, index: Sequence[Tensor], count: int | None) -> Cost:
    """Cost of picking `count` elements of x by an index."""
    rows = flat(count, x.dtype)
    return Cost(0, moved(*index, rows, rows))


def gradient_of_picked(x: Tensor, index: Sequence[Tensor], count: int | None) -> Cost:
    """Gradient of picked elements, summed in zeros of the shape of x; x is not read."""
    return Cost(count, moved(*index, flat(count, x.dtype), fresh(x)))


def _picked(x: Tensor, index: Tensor, count: int | None, direction: str) -> Answer:
    cost = picked if direction == "fprop" else gradient_of_picked
    return cost(x, (index,), count), texts(x, index)


@operators("""
    Elements of x picked along a dimension by index [..] -> the shape of index.
    FLOPs: none; backward an addition for each picked element.
    Bytes: index read, each picked element read and written; backward index and gradient read, the
    gradient of x written.
    (x, _, index, ...): gather
    (x, index): torch.take
    (x, index, ...): aten::take
""")
def gather(x: Tensor, index: Tensor, *, direction: str) -> Answer:
    return _picked(x, index, elements(index.shape), direction)


@operators("""
    Elements of x picked along dim by index, both broadcast along the other dimensions.
    FLOPs: none; backward an addition for each picked element.
    Bytes: index read, each picked element read and written; backward index and gradient read, the
    gradient of x written.
    (x, indices=index, dim): torch.take_along_dim
    (x, index, dim, ...): aten::take_along_dim
""")
def take_along_dim(x: Tensor, index: Tensor, dim: Int | None = None, *, direction: str) -> Answer:
    count: int | None = elements(index.shape)
    if isinstance(dim, int):
        place = axis(len(x.shape), dim)
        if len(x.shape) != len(index.shape):
            raise CannotModel(f"index {index.shape} does not fit {x.shape}")
        count = 1
        for i, (size, wanted) in enumerate(zip(x.shape, index.shape, strict=True)):
            if i != place and 1 not in (size, wanted) and size != wanted:
                raise CannotModel(f"index {index.shape} does not fit {x.shape}")
            count *= wanted if i == place or size == 1 else size
    elif isinstance(dim, Unknown) and x.shape != index.shape:
        count = None
    return _picked(x, index, count, direction)


table_row("""
    Gradient of a gather, summed in zeros of the shape of x.
    FLOPs: an addition for each element of the gradient.
    Bytes: gradient and index read, the gradient of x written.
    (gradient, x, _, index, _): aten::gather_backward
""")(
    "gradient, x, index",
    lambda gradient, x, index: (
        gradient_of_picked(x, (index,), elements(index.shape)),
        texts(gradient, index),
    ),
)


@operators("""
    Slices of x along dim picked by index [k] -> x's shape with k along dim.
    FLOPs: none; backward an addition for each picked element.
    Bytes: index read, each picked element read and written; backward index and gradient read, the
    gradient of x written.
    (*): torch.index_select
    (x, dim, index, ...): aten::index_select
""")
def index_select(x: Tensor, dim: Int, index: Tensor, *, direction: str) -> Answer:
    return _picked(x, index, replaced(x.shape, dim, elements(index.shape)), direction)


@operators("""
    Gradient of an index_select, summed in zeros of the given sizes.
    FLOPs: an addition for each element of the gradient.
    Bytes: gradient and index read, the gradient of the input written.
    (gradient, sizes, _, index): aten::index_select_backward
""")
def index_select_backward(gradient: Tensor, sizes: Ints | Unknown, index: Tensor) -> Answer:
    flops, params = elements(gradient.shape), texts(gradient, index)
    if isinstance(sizes, Unknown):
        return Cost(flops, None), params
    return gradient_of_picked(resized(gradient, sizes), (index,), flops), params


Source = Tensor | Number


def placed(
    x: Tensor,
    index: Sequence[Tensor],
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
    read = () if source is None else (flat(count, source.dtype),)
    own = [flat(count, x.dtype)] * (2 if steps else 1)
    if not in_place:
        own = [x, fresh(x)]
    flops = None if count is None else count * steps
    return Cost(flops if steps else 0, moved(*index, *read, *own))


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


_COPIED: Final = "x, index and source read, the new tensor written"
_IN_PLACE: Final = "index and source read, elements of x (if combined, read and) written"


def _combined(
    x: Tensor,
    index: Tensor,
    source: Source | None = None,
    reduce: str | Unknown | None = None,
    dim: Int = UNKNOWN,
    value: Source | None = None,
    accumulate: Flag = False,
    *,
    counted: Counted,
    adds: bool,
    in_place: bool,
    direction: str,
) -> Answer:
    given = value if source is None else source
    given = given if isinstance(given, Tensor) and given.shape else None
    count = _count(counted, x, index, given, dim)
    if adds or accumulate is True:
        reduce = "add"
    unclear = isinstance(reduce, Unknown) or isinstance(accumulate, Unknown)
    named = "add" if isinstance(reduce, Unknown) or unclear else reduce
    if direction == "fprop":
        cost = _forward(x, index, given, count, named, in_place)
    elif unclear:
        raise CannotModel("the reduce operation is not in the capture")
    else:
        cost = _backward(x, index, given, count, named)
    return Cost(cost.flops, None if unclear else cost.bytes, not unclear), texts(x, index, given)


def _combining(counted: Counted, what: str, names: str, *, adds: bool = False) -> None:
    # Two rows, of the operators with a new tensor and of those in place, whose names end in "_".
    for end, moves in (("", _COPIED), ("_", _IN_PLACE)):
        table_row(f"""
            {what}
            FLOPs: an operation for each combined element (for a mean 2, and a division for each
            element of x), else none; backward none (products, extremes and means are not modelled).
            Bytes: {moves};
            backward the gradient of x with zeros for replaced elements (read and written) and that
            of the source picked from it.

            If the reduce operation is not recorded, one FLOP per element is counted, an estimate.
            {re.sub("$", end, names, flags=re.MULTILINE)}
        """)(_combined, counted=counted, adds=adds, in_place=bool(end))


def _count(
    counted: Counted, x: Tensor, index: Tensor, source: Tensor | None, dim: Int
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
    cost = placed(x, (index,), count, source, _STEPS[reduce], in_place=in_place)
    return cost + Cost(elements(x.shape), 0) if reduce == "mean" else cost


def _backward(
    x: Tensor, index: Tensor, source: Tensor | None, count: int | None, reduce: str | None
) -> Cost:
    if reduce not in (None, "add", "sum"):
        raise CannotModel(f"the backward pass of {reduce!r} is not modelled")
    cost = Cost(0, 0) if source is None else picked(x, (index,), count)
    if reduce is None:
        cost += placed(x, (index,), count, None, 0, in_place=False)
    return cost


_combining(
    Counted.INDEX,
    "Elements of a source, or a number, put into x [..] along dim by index [..].",
    """(x, dim, index, src=source, reduce=reduce, value=value): torch.scatter
        (x, dim, index, source, reduce, ...): aten::scatter
        (x, dim, index, source, ...): aten::scatter""",
)
_combining(
    Counted.INDEX,
    "Elements of a source added to x [..] along dim by index [..].",
    "(x, dim, index, src=source, ...): scatter_add",
    adds=True,
)
_combining(
    Counted.INDEX,
    "Elements of a source combined with those of x [..] along dim by index [..].",
    "(x, dim, index, src=source, reduce, ...): scatter_reduce",
)
_combining(
    Counted.SOURCE,
    "Slices of a source added to those of x [..] along dim by index [k].",
    "(x, dim, index, source, ...): index_add",
    adds=True,
)
_combining(
    Counted.SOURCE,
    "Slices of a source put into x [..] along dim by index [k].",
    "(x, dim, index, source, ...): index_copy",
)
_combining(
    Counted.SOURCE,
    "Slices of a source combined with those of x [..] along dim by index [k].",
    "(x, dim, index, source, reduce, ...): index_reduce",
)
_combining(
    Counted.SLICES,
    "A number put into the slices of x [..] along dim by index [k].",
    "(x, dim, index, value, ...): index_fill",
)
_combining(
    Counted.INDEX,
    "Elements of a source put into x, as one row, by index [..], or added to it.",
    """(x, index, source, accumulate): torch.put
        (x, index, source, accumulate, ...): aten::put""",
)
