"""The arguments of a recorded call as Python source, and why a call cannot be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.analysis.repro.assumed import assumed
from fastprof.analysis.repro.values import LISTS, TEXTS, hints
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.model.markers.kineto import REQUIRED, forms_of
from fastprof.ops.dtypes import canonical_type
from fastprof.ops.registry import MODULES, find, repeat_of

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
        "from_file",
        "detach",
        "detach_",
        "view",
        "record_stream",
    }
)
# Functions of torch whose first argument is a list of tensors.
_OF_LISTS: Final = frozenset(
    {"cat", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag"}
)
_COLLECTIVES: Final = frozenset({"c10d", "c10d_functional", "_c10d_functional", "nccl"})
_NOTHING: Final = Tensor((), "")  # None, a text, or a list that is not recorded
LACKING: Final = "..."  # in the script: not recorded


class NotRepeatableError(Exception):
    """The trace lacks what a script needs of a call; the text says what."""


# The types of tensors in lists are not recorded. Kernels name them, or the size of elements.
_ELEMENT: Final = regex(r"OpaqueType<(\d+)u?>")
_OF_SIZE: Final = {
    "1": "uint8",
    "2": "bfloat16",
    "4": "float32",
    "8": "float64",
    "16": "complex128",
}
_FUNCTOR: Final = regex(r"(?:Functor\w*|CatArrayBatchedCopy\w*)<(?:at::native::)?([\w:]+)[,>]")
_NAMES: Final = {
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::complex": "complex64",
    "unsigned char": "uint8",
}
_OVER_THE_BUS: Final = regex(r"(?i)co?py.*(?:HtoD|DtoH|Host.?to.?Device|Device.?to.?Host)")


def element_type(kernel: str) -> str | None:
    """The type of the elements that a kernel of lists names, or a type of the size that it names.

    None if it names neither.
    """
    size, functor = _ELEMENT.search(kernel), _FUNCTOR.search(kernel)
    if size is not None:
        return _OF_SIZE.get(size[1])
    name = "" if functor is None else functor[1]
    return _NAMES.get(name) or (canonical_type(name) if name in _C_TYPES else None)


_C_TYPES: Final = frozenset({"float", "double", "int", "long", "bool", "short"})


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
    if function.startswith("torch.") and call.op in _OF_LISTS:
        call = _with_list(call)
    texts = _texts(call, unrecorded, can_lack=repeat.make is not None)
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
        if not call.op.isidentifier() or not (forms_of(call.op) or find(call)):
            raise NotRepeatableError("no operator of torch that is known")  # torch.load is code
        return f"torch.Tensor.{call.op}" if call.mod == "Tensor" else f"{call.mod}.{call.op}"
    if call.mod in _COLLECTIVES or call.op.startswith("nccl"):
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


def _texts(call: Call, unrecorded: str | None, can_lack: bool) -> list[str]:
    """Expressions of the arguments. can_lack : `...` stands for what is not recorded"""
    values = [arg.value for arg in call.args]
    told = hints(call.op, values, is_functional=call.mod in MODULES)
    known = {at: f"A({text})" for at, text in assumed(call).items()} if call.mod == "aten" else {}
    if call.op in TEXTS and call.mod == "aten":
        at, text = TEXTS[call.op]
        known[at] = f"A({text!r})"
    if call.mod == "aten":
        _check(call, values, known)
    return [
        known.get(at) or _expression(value, told.get(at, []), unrecorded, can_lack)
        for at, value in enumerate(values)
    ]


def _check(call: Call, values: Sequence[Any], known: Mapping[int, str]) -> None:
    """Check that what an operator of torch requires is recorded.

    Raises
    ------
    NotRepeatableError
        It is not.
    """
    at = LISTS.get(call.op, len(values))
    if at < len(values) and values[at] == _NOTHING:
        raise NotRepeatableError("the list of its indices is not recorded")
    forms = forms_of(call.op)
    if not forms and find(call) is None:
        raise NotRepeatableError("torch has no operator of this name; it is a function of Python")
    lacks = [
        [
            at
            for at, (value, kind) in enumerate(zip(values, form, strict=True))
            if kind == REQUIRED and value in (None, _NOTHING) and at not in known
        ]
        for form in forms
        if len(form) == len(values)
    ]
    if lacks and all(lacks):
        raise NotRepeatableError(f"its argument {lacks[0][0] + 1} is not recorded")


def _expression(value: Any, told: Sequence[str], unrecorded: str | None, can_lack: bool) -> str:
    """told : further arguments of `T`; can_lack : `...` stands for what is not recorded"""
    if isinstance(value, Tensor):
        is_lacking = value.dtype == "" or value.dtype is None
        return LACKING if is_lacking and can_lack else _tensor(value, told)
    if isinstance(value, tuple):
        typed = (_with_type(item, unrecorded) for item in value)
        return f"[{', '.join(_expression(item, told, unrecorded, can_lack) for item in typed)}]"
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


def _with_type(item: Any, unrecorded: str | None) -> Any:
    is_untyped = isinstance(item, Tensor) and item.dtype is None
    return replace(item, dtype=unrecorded) if is_untyped else item


def _tensor(tensor: Tensor, told: Sequence[str]) -> str:
    if tensor.dtype == "":
        return "None"
    if tensor.dtype is None:
        what = "type of a tensor" if tensor.shape else "value of a number or the type of a tensor"
        raise NotRepeatableError(f"the {what} is not recorded")
    name = canonical_type(tensor.dtype)
    if name is None or name in _QUANTISED:
        raise NotRepeatableError(f"tensors of type {tensor.dtype} cannot be made")
    parts = [repr(tensor.shape), repr(name)]
    if tensor.strides is not None and len(tensor.strides) == len(tensor.shape):
        parts.append(repr(tensor.strides))
    parts += told
    return f"T({', '.join(parts)})"
