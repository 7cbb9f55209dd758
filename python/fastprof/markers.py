"""Turns a range's name into what it means: arguments, module, line, layer, torch op, or text.

The forms are those of PyProf, of torch's emit_nvtx and of `layer:` annotations. A form is
recognised as a whole, never by a word in it: what only resembles one is the user's own range.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastprof.call import Arg, Call, Tensor


class Kind(enum.IntEnum):
    """What a range is for."""

    USER = 0
    ARGUMENT = 1
    MODULE = 2
    TRACE = 3
    LAYER = 4
    TORCH = 5


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one range name says. Hashable; equal names have equal meanings.

    Parameters
    ----------
    kind : Kind
        The form that the name has.
    label : str
        The name as it was given to `read`.
    name : str
        The torch name without sizes, the name of the layer, the whole label for other kinds.
    call : Call or None
        The call of an argument marker or of a torch range; None for other kinds.
    has_arguments : bool
        Whether the range gave arguments (sizes, for torch); if not, `call.args` says nothing.
    frames : tuple of str
        `file:line`, outermost first, without the frames of libraries. For trace markers.
    function_stack : str or None
        The function stack of a trace marker that has one.
    module_repr : str or None
        The text of a module marker, such as `512, 512`.
    backward : bool
        Whether the torch range is a part of the backward pass.
    autograd_node : bool
        Whether the torch range is the run of one node of the autograd graph (`MulBackward0`), not
        an operator for the backward pass (`aten::threshold_backward`).
    recompute : bool
        Whether the torch range runs a forward pass again (activation checkpointing).
    """

    kind: Kind
    label: str
    name: str
    call: Call | None = None
    has_arguments: bool = False
    frames: tuple[str, ...] = ()
    function_stack: str | None = None
    module_repr: str | None = None
    backward: bool = False
    autograd_node: bool = False
    recompute: bool = False


def read(label: str, torch_suffix: bool) -> Meaning:
    """Read one range name.

    Parameters
    ----------
    label : str
        The range's text without torch's `, seq = N`, `, op_id = M` and `, input_op_ids = [..]`;
        `, sizes = [..]` is still there.
    torch_suffix : bool
        Whether one of those was there.

    Returns
    -------
    Meaning
        Of kind USER when the label has none of the known forms. Nothing is raised for any text.

    Notes
    -----
    A range that the user opened with `torch.profiler.record_function` under emit_nvtx carries a
    torch suffix too and is read as TORCH: its text does not tell it from an operator.
    """
    if _MARKER_START.match(label) and label.endswith("}") and len(label) <= _LONGEST_MARKER:
        meaning = _read_dict(label)
        if meaning is not None:
            return meaning
    name, sizes = _cut_sizes(label)
    if name.startswith(_LAYER) and not name[len(_LAYER) :].isspace() and name != _LAYER:
        return Meaning(Kind.LAYER, label, name[len(_LAYER) :])
    if torch_suffix or sizes is not None or _is_torch_name(name):
        return _torch(label, name, sizes)
    return Meaning(Kind.USER, label, label)


def op_name(meaning: Meaning) -> str:
    """The operator's name as dict lines show it.

    Parameters
    ----------
    meaning : Meaning
        Of any kind; it makes most sense for ARGUMENT and TORCH.

    Returns
    -------
    str
        The op of an argument marker. For torch ranges the name without namespace, and in backward
        without the word that says so: `MulBackward0` is `Mul`, `nll_loss_backward` is `nll_loss`,
        `_softmax_backward_data` is `_softmax`. For other kinds the meaning's name.
    """
    if meaning.call is None:
        return meaning.name
    if not (meaning.backward or meaning.recompute):
        return meaning.call.op
    return _BACKWARD_WORD.split(meaning.call.op, maxsplit=1)[0] or meaning.call.op


def dict_operators(chain: Sequence[Meaning]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`mod` and `op` of a dict line, as PyProf wrote them for the calls around a kernel.

    Parameters
    ----------
    chain : sequence of Meaning
        Argument markers and torch ranges, outermost first.

    Returns
    -------
    mods, ops : tuples of str, of one length
        Those of all argument markers; where there are none, of the torch ranges that PyProf took
        for backward (by `Backward` or `_backward` at the end of the name), without that word; where
        there are none of these either, of all torch ranges. PyTorch 1 ranges have mod `na`.
    """
    calls = [m.call for m in chain if m.kind == Kind.ARGUMENT and m.call is not None]
    if calls:
        return tuple(call.mod for call in calls), tuple(call.op for call in calls)
    names = [m.name for m in chain if m.kind == Kind.TORCH]
    if any(m.backward for m in chain):
        # What runs inside an autograd node has no number of its own and came first there.
        names.sort(key=lambda name: (_BACKWARD_NODE.search(name) is not None, name))
    cut = [_BACKWARD_WORD.split(name)[0] for name in names if _OLD_BACKWARD.search(name)]
    ops = [name.removeprefix("aten::") for name in names]
    return tuple("na" for _ in cut or ops), tuple(cut or ops)


_OLD_BACKWARD = re.compile(r"(?:Backward|_backward)\Z")


# Markers that are dict literals.

_MARKER_START = re.compile(r"""\{\s*['"](?:mod|op|args|strRepr|traceMarker|funcStack)['"]\s*:""")

# The longest real ones hold thousands of tensors (a fused optimizer's step) at 75 characters each.
_LONGEST_MARKER = 1 << 20

_UNREADABLE = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def _read_dict(label: str) -> Meaning | None:
    """The meaning of a dict literal; None when it is not one of the three markers."""
    try:
        fields = _literal_fields(label)
        mod, op, args = fields.get("mod"), fields.get("op"), fields.get("args")
        if isinstance(mod, str) and isinstance(op, str) and isinstance(args, list):
            call = Call(mod, op, tuple(_argument(arg) for arg in args))
            return Meaning(Kind.ARGUMENT, label, label, call=call, has_arguments=True)
    except _UNREADABLE:
        return None
    module_repr = fields.get("strRepr")
    if isinstance(mod, str) and isinstance(module_repr, str):
        return Meaning(Kind.MODULE, label, label, module_repr=module_repr)
    trace = fields.get("traceMarker")
    if isinstance(trace, list):
        frames = tuple(x for x in trace if isinstance(x, str) and not _is_library_frame(x))
        stack = fields.get("funcStack")
        stack = stack if isinstance(stack, str) else None
        return Meaning(Kind.TRACE, label, label, frames=frames, function_stack=stack)
    return None


def _literal_fields(label: str) -> dict[str, Any]:
    """The dict that the text spells. What is no literal inside `args` becomes None there."""
    tree = ast.parse(label, mode="eval").body
    if not isinstance(tree, ast.Dict):
        return {}
    fields = {}
    for key, value in zip(tree.keys, tree.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            continue
        if key.value == "args" and isinstance(value, ast.List):
            fields["args"] = [_literal_argument(item) for item in value.elts]
        else:
            fields[key.value] = _literal(value)
    return fields


def _literal_argument(node: ast.expr) -> dict[str, Any] | None:
    """The fields of one argument, each None when it is no literal; None when it is no dict."""
    if not isinstance(node, ast.Dict):
        return None
    return {
        key.value: _literal(value)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(_NAMED_FLOATS.visit(node))
    except (ValueError, TypeError):
        return None


class _NamedFloats(ast.NodeTransformer):
    """A list argument writes its infinities as the bare words that Python prints for them."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(float(node.id)) if node.id in ("inf", "nan") else node


_NAMED_FLOATS = _NamedFloats()


def _argument(fields: Mapping[str, Any] | None) -> Arg:
    """One argument. What cannot be read of it is None, so that the others keep their places."""
    if fields is None:
        return Arg("", None)
    name = fields.get("name")
    name = name if isinstance(name, str) else ""
    kind, value = fields.get("type"), fields.get("value")
    if kind in ("tensor", "ndarray"):
        return Arg(name, _tensor(fields))
    if kind == "float" and value in ("inf", "-inf", "nan"):
        return Arg(name, float(value))
    return Arg(name, _plain(value))


def _tensor(fields: Mapping[str, Any]) -> Tensor | None:
    shape, dtype = fields.get("shape"), fields.get("dtype")
    if not isinstance(shape, (tuple, list)) or not all(_is_extent(extent) for extent in shape):
        return None
    return Tensor(tuple(shape), dtype.removeprefix("torch.") if isinstance(dtype, str) else None)


def _is_extent(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _plain(value: Any) -> Any:
    """A value of the kinds that `call.Arg` knows: lists as tuples, all that is strange as text."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, int) and value.bit_length() > 64:
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


# Frames of a trace marker.

_LIBRARY_FRAME = re.compile(
    r"/torch/nn/modules/|/torch/nn/functional\.py:|/torch/tensor\.py:|/torch/_tensor\.py:"
    r"|/torch/autograd/|/torch/_jit_internal\.py:|/torch/_utils\.py:|/torch/optim/"
    r"|/apex/optimizers/|/pyprof/nvtx/|/fastprof/annotate/|/nvmarker\.py:"
)


def _is_library_frame(frame: str) -> bool:
    """Whether a frame is torch's own, or that of the annotator, rather than the user's."""
    return _LIBRARY_FRAME.search("/" + frame.replace("\\", "/") + ":") is not None


# Ranges that torch itself writes.

_LAYER = "layer:"
_EVALUATE = "autograd::engine::evaluate_function: "
_SIZES = ", sizes = ["
_SHAPE = re.compile(r"\[((?:[0-9]{1,19}(?:, [0-9]{1,19})*)?)\]")

# Operators of these namespaces are known without a suffix; those of any other need one.
_TORCH_NAMESPACES = frozenset(
    {"aten", "prim", "prims", "quantized", "torch", "torchaudio", "torchvision"}
    | {"c10d", "c10d_functional", "_c10d_functional", "nccl"}
)
_QUALIFIED = re.compile(r"([a-z_0-9]+)(?:::[A-Za-z_0-9.]+)+\Z")

# Nodes of the autograd graph that do not end in the word Backward.
_AUTOGRAD_NODE = re.compile(
    r"torch::autograd::(?:AccumulateGrad|CopySlices|CopyBackwards|GraphRoot|CppNode<.*>)\Z",
    re.DOTALL,
)
_BACKWARD_NODE = re.compile(r"Backward[0-9]*\Z")  # SumBackward1
_BACKWARD_OP = re.compile(r"[A-Za-z0-9]_backward(?![A-Za-z])")  # aten::_softmax_backward_data
_OPERATOR = re.compile(r"[\w.:]+\Z")
_RECOMPUTE_NAME = re.compile(r"(?:[\w.]+::)*CheckpointFunctionBackward[0-9]*\Z")
_BACKWARD_WORD = re.compile(r"Backward|_backward")


def _cut_sizes(label: str) -> tuple[str, tuple[Tensor, ...] | None]:
    """The label before `, sizes = [..]`, and a tensor a size; None when that is not at its end."""
    at = label.rfind(_SIZES) if label.endswith("]") else -1
    if at < 0:
        return label, None
    place, end = at + len(_SIZES), len(label) - 1
    tensors = []
    while place < end:
        match = _SHAPE.match(label, place, end)
        if match is None or not (match.end() == end or label.startswith(", [", match.end())):
            return label, None
        tensors.append(Tensor(tuple(int(extent) for extent in match[1].split(", ") if extent)))
        place = match.end() + 2
    return label[:at], tuple(tensors)


def _is_torch_name(name: str) -> bool:
    """Whether a name is torch's by itself, with neither suffix nor sizes.

    Not `torch::autograd::AccumulateGrad`: PyTorch 1 wrote it without a number, PyProf took it for
    the user's own, and the direction it gave to what runs inside is kept.
    """
    if name.startswith(_EVALUATE):
        return True
    if _AUTOGRAD_NODE.match(_node(name)):
        return False
    match = _QUALIFIED.match(name)
    return match is not None and match[1] in _TORCH_NAMESPACES


def _torch(label: str, name: str, sizes: tuple[Tensor, ...] | None) -> Meaning:
    node = _node(name)
    recompute = _RECOMPUTE_NAME.match(node) is not None
    is_node = name.startswith(_EVALUATE) or _is_autograd_node(node)
    return Meaning(
        Kind.TORCH,
        label,
        name,
        call=Call(*_split_namespace(node), tuple(Arg("", tensor) for tensor in sizes or ())),
        has_arguments=sizes is not None,
        backward=not recompute and (is_node or _is_backward_op(node)),
        autograd_node=is_node,
        recompute=recompute,
    )


def _node(name: str) -> str:
    """The name without what the autograd engine and some compilers put before it."""
    return name.removeprefix(_EVALUATE).removeprefix("struct ").removeprefix("class ")


def _is_autograd_node(node: str) -> bool:
    """Whether a torch name is that of a node of the autograd graph. A heuristic on names.

    It fails for a user's record_function that is called `...Backward`, and for a custom node that
    is not.
    """
    if _AUTOGRAD_NODE.match(node):
        return True
    operator = _operator(node)
    return operator is not None and _BACKWARD_NODE.search(operator) is not None


def _is_backward_op(node: str) -> bool:
    """Whether a torch name is that of an operator for the backward pass. A heuristic on names.

    `forward_backward` is a user's word for a whole step and no operator.
    """
    operator = _operator(node)
    if operator is None or "forward" in operator:
        return False
    return _BACKWARD_OP.search(operator) is not None


def _operator(node: str) -> str | None:
    operator = node.split(" (", 1)[0].replace("(anonymous namespace)", "")
    return operator if _OPERATOR.match(operator) else None


def _split_namespace(node: str) -> tuple[str, str]:
    """`aten::mm` as ("aten", "mm"). PyTorch 1 wrote no namespace: aten."""
    node = node.replace("(anonymous namespace)::", "")
    head = re.split(r"[ (<]", node, maxsplit=1)[0]
    at = head.rfind("::")
    return (node[:at], node[at + 2 :]) if at > 0 and at + 2 < len(node) else ("aten", node)
