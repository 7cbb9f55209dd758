"""Ranges of PyTorch-profiler traces: operators with typed arguments, frames, modules.

The fields of a label, separated by U+001F: category (`cpu_op`), call stack, module hierarchy, name
(`aten::mm`), and the raw JSON of Input Dims, Input type, Input Strides, Concrete Inputs and of a
collective's fields.
Source: torch/csrc/profiler of PyTorch. All formats since 2021 are supported.

Finds the operator's own arguments among the inputs that an event records.

TorchScript's interpreter passes its entire stack to the profiler; the operator's arguments are the
last entries. torch's schemas give their number (`aten_schemas.txt`, from docs/make_schemas.py).

Parses torch's own ranges: operators, autograd nodes, backward operators.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from sys import intern
from typing import Any, Final

from fastprof._system.regex import regex
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.model.markers.collectives import RECORDED, call_of, recorded
from fastprof.model.markers.frames import is_library_frame
from fastprof.model.markers.literal import parsed
from fastprof.model.markers.meaning import (
    AUTOGRAD_NODE,
    BACKWARD,
    EVALUATE,
    HAS_ARGUMENTS,
    NO_DETAILS,
    RECOMPUTE,
    Details,
    Kind,
    Meaning,
    text_of,
)

FIELD: Final = "\x1f"
NUMBERED: Final = "cpu_op numbered"  # the category of an operator that has a sequence number
_LONGEST_VALUE: Final = 1 << 16
# Characters of the shapes, types or strides of one call: enough for 50 000 tensors. Longer text
# occurs only in damaged traces and would take minutes to parse.
_LONGEST_ARGUMENTS: Final = 1 << 20
_UNREADABLE: Final = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)

# `torch/nn/modules/module.py(1511): _wrapped_call_impl`
_FRAME: Final = regex(r"(.+?)\((\d+)\): (.+)\Z", re.DOTALL)
_MODULE: Final = "nn.Module: "
# Functions in which non-reentrant checkpointing recomputes a forward pass, since PyTorch 1.11.
_RECOMPUTE: Final = regex(
    r"(?:.*/)?torch/utils/checkpoint\.py\(\d+\): (?:recompute_fn|unpack_hook|unpack)\Z", re.DOTALL
)
# Profiler types of list arguments.
_LISTS: Final = frozenset({"TensorList", "GenericList"})
_PROFILER: Final = regex(r"/torch/profiler/|/torch/utils/_python_dispatch\.py")
_LAYER_NAME: Final = regex(r"([\w-]+)\([^()]*\)(?:::\w+)?")
# A marker or a layer that was recorded as an operator, possibly with arguments. No torch operator
# has such a name; a namespace `layer::` does not match.
_ANNOTATION: Final = regex(r"\{|layer:(?!:)")
# Torch's own annotations of collectives, which have operator arguments.
_OF_TORCH: Final = ("nccl:", "gloo:", "c10d::", "ucc:", "mpi:")


def read_event(label: str) -> Meaning | str:
    """The meaning of a label. For an annotation, its name, to be parsed with `read`.

    Some annotations have the category of operators (`ProfilerStep#1`, a compiled region, ranges of
    `_RecordFunctionFast`). An event is an annotation if it has no torch name, no arguments, no
    sequence number and no record of Triton, or if its name has the form of a marker or a layer.
    """
    category, stack, hierarchy, name, *texts = label.split(FIELD)
    if category == "python_function":
        return _python(name)
    if _ANNOTATION.match(name):
        return name
    record = recorded(texts[4]) if name == RECORDED and len(texts) > 4 else None
    call = call_of(record)
    if call is not None:
        details = Details(_frames(stack), _layers(hierarchy), collective=record)
        return replace(torch_meaning(name, name, call.args, details), call=call)
    dims, types, strides, concrete = _own(
        name, [_json(text) for text in (*texts, "", "", "", "")[:4]]
    )
    # In January 2021, annotations had arguments too, none of them.
    triton = _triton(texts[5]) if len(texts) > 5 and texts[5] else None
    is_op = bool(dims) or category == NUMBERED or is_torch_name(name) or is_node(name)
    is_op = is_op or triton is not None
    if not (is_op and category != "user_annotation") and not name.startswith(_OF_TORCH):
        return name
    arguments = _arguments(dims, types, strides, concrete)
    text = name if dims is None else f"{name}, sizes = {_sizes_text(_shapes(dims))}"
    details = NO_DETAILS
    if stack or hierarchy or record is not None or triton is not None:
        details = Details(_frames(stack), _layers(hierarchy), collective=record, triton=triton)
    return torch_meaning(text, name, arguments, details)


def _triton(pairs: str) -> str | None:
    """What Inductor records of a Triton kernel that it starts, its own or one of the program."""
    values = _json(f"{{{pairs}}}")
    if not isinstance(values, dict) or values.get("kernel_backend", _TRITON) != _TRITON:
        return None
    parts = [part for part in str(values.get("kernel_kwargs") or "").split(",") if part]
    parts += [f"{name}={values[name]}" for name in _OF_TRITON if name in values]
    return ", ".join(parts) or None


_TRITON: Final = "triton"
_OF_TRITON: Final = ("num_warps", "num_stages")


def _own(name: str, columns: list[Any]) -> list[Any]:
    """Dims, types, strides and concrete inputs of an operator's own arguments."""
    types = columns[1]
    n = n_before(name, types) if isinstance(types, list) else 0
    return [column[n:] if n and isinstance(column, list) else column for column in columns]


def _frames(stack: str) -> tuple[str, ...]:
    """The executing lines of a call stack `a.py(7): f;b.py(9): g`, which is innermost first.

    Function names are omitted: a frame with a function name refers to the function's definition.
    """
    matches = [_FRAME.match(part.strip()) for part in reversed(stack.split(";"))] if stack else []
    lines = [f"{match[1]}:{match[2]}" for match in matches if match is not None]
    return tuple([line for line in lines if _is_own(line)])


def _is_own(line: str) -> bool:
    return not is_library_frame(line) and not _PROFILER.search("/" + line)


def _layers(hierarchy: str) -> tuple[str, ...]:
    """Names of modules: `TOP(Net)::forward.layer1(Block)::forward.conv(Conv2d)::forward`."""
    names = _LAYER_NAME.findall(hierarchy)
    return tuple(name for name in names if name not in ("TOP", "SELF"))


def _python(name: str) -> Meaning:
    """The meaning of a Python function event: a module, a frame, or a builtin (HIDDEN)."""
    if name.startswith(_MODULE):
        return Meaning(Kind.LAYER, name, name[len(_MODULE) :])
    match = _FRAME.match(name)
    if match is None:
        return Meaning(Kind.HIDDEN, name, name)
    line = f"{match[1]}:{match[2]}"
    details = Details((f"{line} {match[3]}",)) if _is_own(line) else NO_DETAILS
    traits = RECOMPUTE if _RECOMPUTE.match(name) else 0
    return Meaning(Kind.FRAME, name, name, None, traits, details)


def _json(text: str) -> Any:
    """Parse JSON text; None if it is empty, too long or invalid."""
    if not 0 < len(text) <= _LONGEST_ARGUMENTS:
        return None
    import json

    try:
        return json.loads(text)
    except _UNREADABLE:
        return None


def _arguments(dims: Any, types: Any, strides: Any, concrete: Any) -> tuple[Arg, ...] | None:
    """The arguments of a call by position; None if the event records none.

    Equal tensors are one argument: a trace has many operators and few tensors.
    """
    columns = [each if isinstance(each, list) else [] for each in (dims, types, strides, concrete)]
    n = max(map(len, columns))
    if dims is None and types is None:
        return None
    filled = [column + [None] * (n - len(column)) for column in columns]
    return tuple([_argument(*members) for members in zip(*filled, strict=True)])


def _argument(dims: Any, dtype: Any, strides: Any, concrete: Any) -> Arg:
    """One argument: a tensor, a tuple of tensors, a plain value, or UNKNOWN."""
    value = _concrete(concrete)
    if value is not UNKNOWN:
        return Arg("", value)
    if isinstance(dtype, str) and dtype in _LISTS and not dims:
        return Arg("", UNKNOWN)  # traces before 2023 do not record list elements
    if _is_nested(dims) or (isinstance(dtype, str) and dtype in _LISTS and dims):
        types = dtype if isinstance(dtype, list) else [None] * len(dims)
        steps = strides if isinstance(strides, list) else [None] * len(dims)
        items = zip(
            dims, [*types, *[None] * len(dims)], [*steps, *[None] * len(dims)], strict=False
        )
        return Arg("", tuple(_tensor(*item).value for item in items))
    return _tensor(dims, dtype, strides)


def _is_nested(dims: Any) -> bool:
    """Whether dims are those of a list of tensors."""
    return isinstance(dims, list) and list in map(type, dims)


def _tensor(dims: Any, dtype: Any, strides: Any) -> Arg:
    """A tensor. Without dimensions and type, a placeholder for an argument that is no tensor."""
    shape = _extents(dims)
    known = isinstance(dtype, str) and not dtype[:1].isupper() and not (shape and not dtype)
    steps = _extents(strides)
    return _shared_tensor(
        shape or (),
        intern(dtype) if known else None,
        steps if shape and steps is not None and len(steps) == len(shape) else None,
    )


@lru_cache(maxsize=4096)
def _shared_tensor(
    shape: tuple[int, ...], dtype: str | None, strides: tuple[int, ...] | None
) -> Arg:
    return Arg("", Tensor(shape, dtype, strides))


def _extents(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    for each in value:
        if type(each) is not int or not 0 <= each <= _LARGEST:
            return None
    return tuple(value)


_LARGEST: Final = (1 << 63) - 1


def _concrete(text: Any) -> Any:
    """Parse a concrete input; UNKNOWN if there is none.

    `1`, `0.5`, `True`, `None`, `[1, 1]`, `[True, False]`; other text (a device) stays text.
    """
    if not isinstance(text, str) or not text or len(text) > _LONGEST_VALUE:
        return UNKNOWN
    return _literal(text)


@lru_cache(maxsize=256)  # most are `1`, `False` and the like
def _literal(text: str) -> Any:
    if text == "None":
        return None
    try:
        value = ast.literal_eval(parsed(text.lstrip(" \t")))
    except _UNREADABLE:
        return {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(text, text)
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else UNKNOWN


def _shapes(dims: Any) -> list[tuple[int, ...]]:
    """Shapes as in emit_nvtx, which flattens lists of tensors."""
    shapes: list[tuple[int, ...]] = []
    for dim in dims if isinstance(dims, list) else []:
        if _is_nested(dim):
            shapes.extend(_extents(item) or () for item in dim)
        else:
            shapes.append(_extents(dim) or ())
    return shapes


def _sizes_text(shapes: list[tuple[int, ...]]) -> str:
    return "[" + ", ".join([f"[{', '.join(map(str, shape))}]" for shape in shapes]) + "]"


_SPACE: Final = "aten::"
_TENSORS: Final = "TO"  # in a form: a tensor, and an out tensor
_PLAIN: Final = ".,"  # in a form: not a tensor; other letters: anything


def n_before(name: str, types: Sequence[Any]) -> int:
    """Number of inputs on the stack before the operator's arguments.

    Parameters
    ----------
    name : str
        The operator, such as `aten::mm`. The result is 0 for other namespaces.
    types : sequence
        The profiler's type of each input: `float` for a tensor, `Scalar`, "", ...

    Returns
    -------
    int
        0 if all inputs match a schema, or if the last inputs match none.
    """
    if not name.startswith(_SPACE) or not types:
        return 0
    forms = _forms().get(name[len(_SPACE) :].split(".", 1)[0], ())
    if any(_fits(form, types) for form in forms):
        return 0
    for form in forms:  # longest first; TorchScript calls none with an out tensor
        n = len(types) - len(form)
        plain = all(
            kind not in _PLAIN or not _is_tensor(type_)
            for kind, type_ in zip(form, types[max(n, 0) :], strict=False)
        )
        if n > 0 and "T" in form and "O" not in form and plain and _fits(form, types[n:]):
            return n
    return 0


def _fits(form: str, types: Sequence[Any]) -> bool:
    return len(form) == len(types) and all(
        _is_tensor(type_) for kind, type_ in zip(form, types, strict=True) if kind in _TENSORS
    )


def _is_tensor(kind: Any) -> bool:
    """Whether a profiler type is a tensor's; `Scalar` and `TensorList` are not."""
    return isinstance(kind, str) and kind != "" and not kind[0].isupper()


REQUIRED: Final = "."  # in a form: an argument other than a tensor, without a default


def forms_of(name: str) -> tuple[str, ...]:
    """The forms of an operator of namespace aten, see `aten_schemas.txt`; () if torch has none."""
    return _forms().get(name, ())


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    text = Path(__file__).with_name("aten_schemas.txt").read_text("ascii")
    lines = (line.split() for line in text.splitlines()[1:])
    return {name: tuple(forms) for name, *forms in lines}


_SIZES = ", sizes = ["
_SHAPE = regex(r"\[((?:[0-9]{1,19}(?:, [0-9]{1,19})*)?)\]")

# Operators of these namespaces are recognised without a suffix; others require one.
_TORCH_NAMESPACES = frozenset(
    {"aten", "prim", "prims", "quantized", "torch", "torchaudio", "torchvision"}
    | {"c10d", "c10d_functional", "_c10d_functional", "nccl"}
)
_QUALIFIED = regex(r"([a-z_0-9]+)(?:::[A-Za-z_0-9.]+)+\Z")

# Autograd nodes whose names do not end in Backward.
_AUTOGRAD_NODE = regex(
    r"torch::autograd::(?:AccumulateGrad|CopySlices|CopyBackwards|GraphRoot|CppNode<.*>)\Z",
    re.DOTALL,
)
BACKWARD_NODE = regex(r"Backward[0-9]*\Z")  # SumBackward1
_BACKWARD_OP = regex(r"[A-Za-z0-9]_backward(?![A-Za-z])")  # aten::_softmax_backward_data
_OPERATOR = regex(r"[\w.:]+\Z")
_RECOMPUTE_NAME = regex(r"(?:[\w.]+::)*CheckpointFunctionBackward[0-9]*\Z")
BACKWARD_WORD = regex(r"Backward|_backward")


def cut_sizes(label: str) -> tuple[str, tuple[Arg, ...] | None]:
    """Split a label at its trailing `, sizes = [..]`: name, and one tensor per size or None."""
    at = label.rfind(_SIZES) if label.endswith("]") else -1
    if at < 0:
        return label, None
    place, end = at + len(_SIZES), len(label) - 1
    args = []
    while place < end:
        match = _SHAPE.match(label, place, end)
        if match is None or not (match.end() == end or label.startswith(", [", match.end())):
            return label, None
        args.append(_tensor_of_sizes(match[1]))
        place = match.end() + 2
    return label[:at], tuple(args)


@lru_cache(maxsize=4096)
def _tensor_of_sizes(text: str) -> Arg:
    """A tensor of a shape `8, 64`: a trace has many operators and few shapes."""
    return Arg("", Tensor(tuple(int(extent) for extent in text.split(", ") if extent)))


def is_torch_name(name: str) -> bool:
    """Whether a name without suffix and sizes is torch's.

    Excludes `torch::autograd::AccumulateGrad`: PyTorch 1 writes it without a number and PyProf
    treats it as the user's range; excluding it keeps PyProf's direction for the work inside.
    """
    if name.startswith(EVALUATE):
        return True
    if _AUTOGRAD_NODE.match(node_of(name)):
        return False
    match = _QUALIFIED.match(name)
    return match is not None and match[1] in _TORCH_NAMESPACES


def torch_meaning(
    label: str, name: str, args: tuple[Arg, ...] | None, details: Details = NO_DETAILS
) -> Meaning:
    """The meaning of a torch range; `args` is None if the range records no arguments."""
    name, call, traits = _of_name(name)
    text: str | None = name if label == name else label
    if args is not None:
        traits |= HAS_ARGUMENTS
        if label == text_of(name, args):
            text = None
    if args:
        call = Call(call.mod, call.op, args)
    return Meaning(Kind.TORCH, text, name, call, traits, details)


@lru_cache(maxsize=4096)
def _of_name(name: str) -> tuple[str, Call, int]:
    """The name of a torch range, its call without arguments, and the traits that it tells.

    A trace has many calls and few operators: all calls of one have the same texts.
    """
    node = node_of(name)
    recompute = _RECOMPUTE_NAME.match(node) is not None
    node_runs = name.startswith(EVALUATE) or is_node(node)
    traits = RECOMPUTE * recompute | AUTOGRAD_NODE * node_runs
    if not recompute and (node_runs or _is_backward_op(node)):
        traits |= BACKWARD
    return name, Call(*_split_namespace(node)), traits


def node_of(name: str) -> str:
    """The name without the prefixes of the autograd engine and of some compilers."""
    return name.removeprefix(EVALUATE).removeprefix("struct ").removeprefix("class ")


def is_node(node: str) -> bool:
    """Whether a torch name is an autograd node's, heuristically.

    Wrong for a user's record_function named `...Backward` and for a custom node named otherwise.
    """
    if _AUTOGRAD_NODE.match(node):
        return True
    operator = _operator(node)
    return operator is not None and BACKWARD_NODE.search(operator) is not None


def _is_backward_op(node: str) -> bool:
    """Whether a torch name is an operator of the backward pass, heuristically.

    Excludes names such as `forward_backward`, by which users denote an entire step.
    """
    operator = _operator(node)
    if operator is None or "forward" in operator:
        return False
    return _BACKWARD_OP.search(operator) is not None


def _operator(node: str) -> str | None:
    operator = node.split(" (", 1)[0].replace("(anonymous namespace)", "")
    return operator if _OPERATOR.match(operator) else None


def _split_namespace(node: str) -> tuple[str, str]:
    """Split `aten::mm` into ("aten", "mm"). PyTorch 1 names have no namespace: aten."""
    node = node.replace("(anonymous namespace)::", "")
    head = re.split(r"[ (<]", node, maxsplit=1)[0]
    at = head.rfind("::")
    return (intern(node[:at]), node[at + 2 :]) if at > 0 and at + 2 < len(node) else ("aten", node)
