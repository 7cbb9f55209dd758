"""The arguments of a recorded call as Python source, and why a call cannot be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops.registry import MODULES, repeat_of
from fastprof.ops.tensor import canonical_type

_QUANTISED: Final = frozenset({"quint8", "qint8", "qint32"})  # need a scale, which is not recorded

# Operators that wait for the host, make views, or have no work of their own to repeat.
_NO_WORK: Final = frozenset(
    {
        "__getattr__",
        "backward",
        "item",
        "is_nonzero",
        "_local_scalar_dense",
        "empty",
        "detach",
        "view",
        "record_stream",
    }
)
# Numbers of choices: the argument whose size, in a dimension, integers of another argument index.
# By operator: (the argument of integers, the argument that they index, its dimension).
_INDEXES: Final[dict[str, tuple[int, int, int]]] = {
    "embedding": (1, 0, 0),
    "embedding_bag": (1, 0, 0),
    "index_select": (2, 0, -1),
    "gather": (2, 0, -1),
    "scatter": (2, 0, -1),
    "scatter_": (2, 0, -1),
    "scatter_add": (2, 0, -1),
    "scatter_add_": (2, 0, -1),
    "index_add": (2, 0, -1),
    "index_add_": (2, 0, -1),
    "index_copy": (2, 0, -1),
    "index_copy_": (2, 0, -1),
    "nll_loss": (1, 0, 1),
    "nll_loss_nd": (1, 0, 1),
    "nll_loss_forward": (1, 0, 1),
    "cross_entropy_loss": (1, 0, 1),
    "take_along_dim": (1, 0, -1),
}
# Functions of torch whose first argument is a list of tensors.
_OF_LISTS: Final = frozenset(
    {"cat", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag"}
)
_COLLECTIVES: Final = frozenset({"c10d", "c10d_functional", "_c10d_functional", "nccl"})
LACKING: Final = "..."  # in the script: not recorded
_IN_DIMENSION_OF: Final = 1  # where the dimension is -1, the argument that has it


class NotRepeatableError(Exception):
    """The trace lacks what a script needs of a call; the text says what."""


# The types of tensors in lists are not recorded. Kernels that only copy name the size of elements.
_ELEMENT: Final = regex(r"OpaqueType<(\d+)u?>")
_OF_SIZE: Final = {1: "uint8", 2: "bfloat16", 4: "float32", 8: "float64", 16: "complex128"}


_OVER_THE_BUS: Final = regex(r"(?i)(?:mem)?cpy.*(?:HtoD|DtoH|Host.?to.?Device|Device.?to.?Host)")


def element_type(kernel: str) -> str | None:
    """A type of the size of the elements that a copying kernel names, None if it names none."""
    size = _ELEMENT.search(kernel)
    return None if size is None else _OF_SIZE.get(int(size[1]))


class Source(NamedTuple):
    """A call as expressions of the script: `T((8, 64), "float32", (64, 1))`.

    Parameters
    ----------
    args : its positional arguments
    named : the others
    function : the import path of the function; "" for the operator of torch's dispatcher
    make : the import path of the function that completes the arguments; "" for none
    """

    args: list[str]
    named: dict[str, str]
    function: str
    make: str


def source_of(call: Call, kernel: str = "") -> Source:
    """A call as a script makes it.

    kernel : the name of its first kernel, which tells what is not recorded

    Raises
    ------
    NotRepeatableError
        The call cannot be repeated.
    """
    if call.op.startswith("triton_"):
        raise NotRepeatableError("torch.compile made it; repeat the operators that it joins")
    if call.op in _NO_WORK:
        raise NotRepeatableError("it has no GPU work of its own to repeat")
    if _OVER_THE_BUS.search(kernel):
        raise NotRepeatableError("a copy between host and GPU; a script makes its tensors on one")
    unrecorded, repeat = element_type(kernel), repeat_of(call)
    function = repeat.call or _path(call)
    values = [arg.value for arg in call.args]
    if function.startswith("torch.") and call.op in _OF_LISTS:
        call = _with_list(call)
        values = [arg.value for arg in call.args]
    most = _most(call.op, values)
    can_lack = repeat.make is not None
    texts = [
        _expression(value, most.get(i), unrecorded, can_lack) for i, value in enumerate(values)
    ]
    pairs = list(zip(call.args, texts, strict=True))
    return Source(
        [text for arg, text in pairs if not arg.name],
        {arg.name: text for arg, text in pairs if arg.name},
        function,
        repeat.make or "",
    )


def _path(call: Call) -> str:
    """The import path of a function of torch that markers record; "" for operators of dispatchers.

    Raises
    ------
    NotRepeatableError
        It is a function of another library.
    """
    if call.mod in MODULES:
        return f"torch.Tensor.{call.op}" if call.mod == "Tensor" else f"{call.mod}.{call.op}"
    if call.mod in _COLLECTIVES:
        raise NotRepeatableError("communication needs the other ranks")
    if "." in call.mod or any(arg.name for arg in call.args):
        raise NotRepeatableError(
            f"a function of {call.mod}; fastprof.op(call=...) tells how to import it"
        )
    return ""


def _with_list(call: Call) -> Call:
    """A call of `torch.cat`, whose list of tensors markers record as arguments."""
    n = sum(isinstance(arg.value, Tensor) and not arg.name for arg in call.args)
    tensors = tuple(arg.value for arg in call.args[:n])
    return replace(call, args=(Arg("", tensors), *call.args[n:]))


def _most(op: str, values: Sequence[Any]) -> dict[int, int]:
    """By argument of integers, the number of choices that it indexes."""
    if op not in _INDEXES:
        return {}
    integers, of, dimension = _INDEXES[op]
    if max(integers, of) >= len(values) or not isinstance(values[of], Tensor):
        return {}
    if dimension < 0:
        dimension = values[_IN_DIMENSION_OF] if len(values) > _IN_DIMENSION_OF else 0
    shape = values[of].shape
    is_there = isinstance(dimension, int) and -len(shape) <= dimension < len(shape)
    return {integers: shape[dimension]} if is_there else {}


def _expression(value: Any, most: int | None, unrecorded: str | None, can_lack: bool) -> str:
    """can_lack : `...` stands for what is not recorded"""
    if isinstance(value, Tensor):
        is_lacking = value.dtype == "" or (value.dtype is None and unrecorded is None)
        return LACKING if is_lacking and can_lack else _tensor(value, most, unrecorded)
    if isinstance(value, tuple):
        return f"[{', '.join(_expression(item, most, unrecorded, can_lack) for item in value)}]"
    if value is UNKNOWN and can_lack:
        return LACKING
    if value is UNKNOWN:
        raise NotRepeatableError("an argument is not recorded: a list, or another object")
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, float):
        special = {"inf": "float('inf')", "-inf": "-float('inf')", "nan": "float('nan')"}
        return special.get(repr(value), repr(value))
    raise NotRepeatableError(f"an argument is a {type(value).__name__}, which no script can make")


def _tensor(tensor: Tensor, most: int | None, unrecorded: str | None) -> str:
    if tensor.dtype == "":
        return "None"
    if tensor.dtype is None and unrecorded is None:
        raise NotRepeatableError("the type of a tensor is not recorded")
    name = unrecorded if tensor.dtype is None else canonical_type(tensor.dtype)
    if name is None or name in _QUANTISED:
        raise NotRepeatableError(f"tensors of type {tensor.dtype} cannot be made")
    parts = [repr(tensor.shape), repr(name)]
    if tensor.strides is not None and len(tensor.strides) == len(tensor.shape):
        parts.append(repr(tensor.strides))
    if most is not None:
        parts.append(f"most={most}")
    return f"T({', '.join(parts)})"
