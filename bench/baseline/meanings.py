"""The text of a range -> its numbers and its meaning, parsed once per distinct text."""

from __future__ import annotations

import ast
import re
from copy import copy
from functools import cache
from typing import Any

from fastprof.model.call import Arg, Call, Tensor

USER, ARGUMENT, MODULE, TRACE, LAYER, TORCH = (
    "user",
    "argument",
    "module",
    "trace",
    "layer",
    "torch",
)

ENGINE = "autograd::engine::evaluate_function: "
NAMESPACES = {"aten", "prim", "prims", "quantized", "torch", "torchaudio", "torchvision"} | {
    *("c10d", "c10d_functional", "_c10d_functional", "nccl")
}
QUALIFIED = re.compile(r"([a-z_0-9]+)(?:::[A-Za-z_0-9.]+)+\Z")
OTHER_NODE = re.compile(
    r"torch::autograd::(?:AccumulateGrad|CopySlices|CopyBackwards|GraphRoot|CppNode<.*>)\Z", re.S
)
NODE = re.compile(r"Backward[0-9]*\Z")
BACKWARD_OPERATOR = re.compile(r"[A-Za-z0-9]_backward(?![A-Za-z])")
RECOMPUTATION = re.compile(r"(?:[\w.]+::)*CheckpointFunctionBackward[0-9]*\Z")
BACKWARD_WORD = re.compile(r"Backward|_backward")
SHAPES = re.compile(r"(?:\[(?:\d{1,19}(?:, \d{1,19})*)?\](?:, (?=\[)|\Z))*\Z")
SHAPE = re.compile(r"\[([^]]*)\]")
LIBRARY = re.compile(
    r"/torch/nn/modules/|/torch/nn/functional\.py:|/torch/_?tensor\.py:|/torch/autograd/"
    r"|/torch/_jit_internal\.py:|/torch/_utils\.py:|/torch/optim/|/apex/optimizers/"
    r"|/pyprof/nvtx/|/fastprof/annotate/|/nvmarker\.py:"
)
# The suffix lists of torch names are lists of lists of numbers.
LIST = re.compile(r"(?:[^][]|\[[^][]*\])*\]\Z")
LONGEST_MARKER = 1 << 20
UNREADABLE = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


class Meaning:
    """The meaning of a label. Each distinct label has one object: compare by identity."""

    def __init__(self, label: str, kind: str = USER, name: str | None = None) -> None:
        self.label, self.kind, self.name = label, kind, label if name is None else name
        self.call: Call | None = None
        self.has_arguments = False
        self.frames: tuple[str, ...] = ()
        self.backward = self.node = self.recompute = self.engine = False
        # Of a torch range: the text before and after its numbers, escaped as in repr.
        self.quoted = "", ""

    def saying(self, what: str) -> Meaning:
        """The same meaning with an additional flag."""
        other = copy(self)
        setattr(other, what, True)
        return other

    @property
    def op(self) -> str:
        """The operator; in backward, without the suffix for backward."""
        if self.call is None:
            return self.name
        if not (self.backward or self.recompute):
            return self.call.op
        return BACKWARD_WORD.split(self.call.op, maxsplit=1)[0] or self.call.op


class Reader:
    """Parses texts; caches known labels and texts."""

    def __init__(self) -> None:
        self.labels: dict[tuple[str, bool], Meaning] = {}
        self.texts: dict[str, tuple[Meaning, int | None, int | None]] = {}

    def read(self, text: str) -> tuple[Meaning, int | None, int | None]:
        """Meaning, sequence number and op_id of a range's text."""
        result = self.texts.get(text)
        if result is None:
            name, sizes, seq, op_id = split(text)
            key = name + sizes, name != text
            if key not in self.labels:
                self.labels[key] = meaning_of(*key)
            result = self.labels[key], seq, op_id
            if op_id is None:  # texts with one never repeat
                self.texts[text] = result
        return result


def split(text: str) -> tuple[str, str, int | None, int | None]:
    """NAME[, seq = N][, op_id = M][, sizes = [..]][, input_op_ids = [..]], from the right.

    Name, sizes with what stands before them, seq, op_id. The name is the text itself if there is
    nothing else; a name may hold commas.
    """
    sizes = ""
    if text.endswith("]"):
        text, _ = _without_list(text, ", input_op_ids = [")
        text, sizes = _without_list(text, ", sizes = [")
    text, op_id = _without_number(text, ", op_id = ")
    text, seq = _without_number(text, ", seq = ")
    return text, sizes, seq, op_id


def _without_list(text: str, key: str) -> tuple[str, str]:
    head, result, inside = text.rpartition(key)
    return (head, key + inside) if result and _closes_at_end(inside) else (text, "")


@cache
def _closes_at_end(inside: str) -> bool:
    if LIST.match(inside):
        return True
    depth = 1
    for i, character in enumerate(inside):
        depth += (character == "[") - (character == "]")
        if depth == 0:
            return i == len(inside) - 1
    return False


def _without_number(text: str, key: str) -> tuple[str, int | None]:
    head, result, digits = text.rpartition(key)
    if result and digits.isascii() and digits.isdigit() and len(digits) < 20:
        number = int(digits)
        if number < 1 << 63:
            return head, number
    return text, None


def meaning_of(label: str, torch_suffix: bool) -> Meaning:
    """The meaning of a name with its sizes; `torch_suffix`: there was more behind it."""
    marker = _marker(label) if label[:1] == "{" and label[-1:] == "}" else None
    if marker is not None:
        return marker
    name, sizes = _shapes(label)
    layer = name.removeprefix("layer:")
    if layer != name and layer and not layer.isspace():
        return Meaning(label, LAYER, layer)
    if not (torch_suffix or sizes is not None or _is_torch(name)):
        return Meaning(label)
    return _torch(label, name, sizes)


def _shapes(label: str) -> tuple[str, tuple[Arg, ...] | None]:
    head, result, inside = label.rpartition(", sizes = [")
    if not (result and inside.endswith("]") and SHAPES.match(inside[:-1])):
        return label, None
    texts = SHAPE.findall(inside)
    shapes = [tuple(int(extent) for extent in text.split(", ") if extent) for text in texts]
    return head, tuple(Arg("", Tensor(shape)) for shape in shapes)


def _plain_node(name: str) -> str:
    return name.removeprefix(ENGINE).removeprefix("struct ").removeprefix("class ")


def _is_torch(name: str) -> bool:
    if name.startswith(ENGINE):
        return True
    match = QUALIFIED.match(name)
    return not OTHER_NODE.match(_plain_node(name)) and bool(match and match[1] in NAMESPACES)


def _torch(label: str, name: str, sizes: tuple[Arg, ...] | None) -> Meaning:
    node = _plain_node(name)
    operator = node.split(" (", 1)[0].replace("(anonymous namespace)", "")
    operator = operator if re.fullmatch(r"[\w.:]+", operator) else ""
    meaning = Meaning(label, TORCH, name)
    meaning.quoted = _escaped(name), _escaped(label[len(name) :])
    meaning.recompute = bool(RECOMPUTATION.match(node))
    is_node = OTHER_NODE.match(node) or NODE.search(operator)
    meaning.node = name.startswith(ENGINE) or bool(is_node)
    is_operator = "forward" not in operator and BACKWARD_OPERATOR.search(operator)
    meaning.backward = not meaning.recompute and (meaning.node or bool(is_operator))
    meaning.has_arguments = sizes is not None
    node = node.replace("(anonymous namespace)::", "")
    at = re.split(r"[ (<]", node, maxsplit=1)[0].rfind("::")
    qualified = 0 < at < len(node) - 2
    mod, op = (node[:at], node[at + 2 :]) if qualified else ("aten", node)
    meaning.call = Call(mod, op, sizes or ())
    return meaning


def _escaped(text: str) -> str:
    """Escaped as in repr, without the quotes."""
    return repr('"' + text)[2:-1]


def _marker(label: str) -> Meaning | None:
    """One of the three markers that are dict literals."""
    if len(label) > LONGEST_MARKER:
        return None
    try:
        tree = ast.parse(label, mode="eval").body
        pairs = zip(tree.keys, tree.values) if isinstance(tree, ast.Dict) else ()  # noqa: B905
        fields = {ast.literal_eval(key): value for key, value in pairs if key is not None}
        mod, op, module, trace = (
            _value(fields.get(key)) for key in ("mod", "op", "strRepr", "traceMarker")
        )
        args = fields.get("args")
        if isinstance(mod, str) and isinstance(op, str) and isinstance(args, ast.List):
            meaning = Meaning(label, ARGUMENT)
            meaning.call = Call(mod, op, tuple(map(_argument, args.elts)))
            meaning.has_arguments = True
            return meaning
    except UNREADABLE:
        return None
    if isinstance(mod, str) and isinstance(module, str):
        return Meaning(label, MODULE)
    if isinstance(trace, list):
        meaning = Meaning(label, TRACE)
        lines = [line for line in trace if isinstance(line, str)]
        meaning.frames = tuple(
            line for line in lines if not LIBRARY.search("/" + line.replace("\\", "/") + ":")
        )
        return meaning
    return None


def _value(node: ast.expr | None) -> Any:
    """The value of a literal; None if it is not a literal."""
    try:
        return None if node is None else ast.literal_eval(node)
    except UNREADABLE:
        return None


def _argument(node: ast.expr) -> Arg:
    if not isinstance(node, ast.Dict):
        return Arg("", None)
    fields = {_value(key): value for key, value in zip(node.keys, node.values, strict=True)}
    name, kind, shape, dtype, value = (
        _value(fields.get(key)) for key in ("name", "type", "shape", "dtype", "value")
    )
    name = name if isinstance(name, str) else ""
    if kind in ("tensor", "ndarray"):
        is_shape = isinstance(shape, (tuple, list)) and all(
            type(extent) is int and 0 <= extent < 1 << 63 for extent in shape
        )
        dtype = dtype.removeprefix("torch.") if isinstance(dtype, str) else None
        return Arg(name, Tensor(tuple(shape), dtype) if is_shape else None)
    if kind == "float" and value in ("inf", "-inf", "nan"):
        return Arg(name, float(value))
    return Arg(name, _plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if isinstance(value, int) and value.bit_length() > 64:
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
