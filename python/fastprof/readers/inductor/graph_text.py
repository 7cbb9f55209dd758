"""The text of a compiled graph, as `GraphModule.print_readable` of torch prints it.

    # File: /home/me/train.py:12 in forward, code: h = self.norm(x)
    add: "f32[32, 64][64, 1]cuda:0" = torch.ops.aten.add.Tensor(mul, arg1_1);  mul = None

A comment precedes the first node of each source line. The annotation of a node has its type, shape,
strides and device (`Graph.python_code` in torch/fx/graph.py, torch/utils/_dtype_abbrs.py). Graphs
before autograd call Python functions, methods and operators instead: `torch._C._nn.gelu(x)`,
`x.sum()`, `x * 2`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.model.compiled import Node

_LARGEST: Final = 1 << 24  # characters of a graph
_UNREADABLE: Final = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
_SYMBOL: Final = 128  # the extent of a symbol without a known value
_MOST_EXTENT: Final = 1 << 62

_TYPES: Final = {
    "b8": "bool", "bf16": "bfloat16", "bits8": "bits8", "bits16": "bits16", "c32": "complex32",
    "c64": "complex64", "c128": "complex128", "f16": "float16", "f32": "float32", "f64": "float64",
    "f4e2m1fnx2": "float4_e2m1fn_x2", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
    "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64",
}  # fmt: skip
_ANNOTATION: Final = regex(r"(\w+)\[([^\]]*)\]")
_PLACE: Final = regex(r"File: (.+?):(\d+) in ")
_MODULE: Final = regex(r"Annotation: \{.*?'module_fqn': '([^']*)'")
_BINARY: Final = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.MatMult: "matmul",
    ast.Pow: "pow", ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
}  # fmt: skip


class _Around(NamedTuple):
    """What the comment above nodes tells: the source line, the module."""

    frames: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


def nodes_of(text: str, symbols: Mapping[str, int] | None = None) -> dict[str, Node]:
    """The nodes of a graph by name, in the order of execution; empty if the text is no graph.

    `Node.frames` has the innermost frame only, `Node.layers` the module that
    `torch.fx.traceback.annotate` names `module_fqn`.

    symbols : the values of symbolic extents; others count as 128
    """
    if len(text) > _LARGEST:
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except _UNREADABLE:
        return {}
    around = _comments(text)
    reading = _Reading(symbols or {})
    for function in _functions(module):
        for argument in function.args.args:
            reading.tensors[argument.arg] = reading.annotated(argument.annotation)
        for statement in function.body:
            try:
                reading.add(statement, around.get(statement.lineno, _Around()))
            except _UNREADABLE:
                continue
    return reading.nodes


def functions_of(text: str) -> dict[str, str]:
    """The function that each node of a graph calls: `gelu`, `layer_norm`, `mul`."""
    return {name: node.call.op for name, node in nodes_of(text).items()}


def _functions(module: ast.Module) -> Iterator[ast.FunctionDef]:
    """The function `forward` of the first class; those of inner graphs are parts of it."""
    for outer in module.body:
        for member in outer.body if isinstance(outer, ast.ClassDef) else [outer]:
            if isinstance(member, ast.FunctionDef) and member.name == "forward":
                yield member
                return


def _comments(text: str) -> dict[int, _Around]:
    """What the last comment tells by line number, counted from 1."""
    around: dict[int, _Around] = {}
    current = _Around()
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.lstrip()
        if stripped.startswith("#"):
            place, module = _PLACE.search(stripped), _MODULE.search(stripped)
            frames = () if place is None else (f"{place[1]}:{place[2]}",)
            is_whole = module is not None and not module[1].endswith("...")
            current = _Around(frames, (module[1],) if module is not None and is_whole else ())
        around[number] = current
    return around


class _Reading:
    """Reads statements in order: an argument is the result of an earlier one."""

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self._symbols = symbols
        self.tensors: dict[str, Tensor | None] = {}
        self.nodes: dict[str, Node] = {}

    def add(self, statement: ast.stmt, around: _Around) -> None:
        """Add the node of an assignment; other statements are none."""
        annotation: ast.expr | None = None
        target: ast.expr
        if isinstance(statement, ast.AnnAssign):
            target, annotation, value = statement.target, statement.annotation, statement.value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        else:
            return
        if not isinstance(target, ast.Name) or value is None:
            return
        if isinstance(value, ast.Constant):  # `mul = None` frees a value
            return
        if isinstance(value, ast.Name):  # another name of a placeholder
            self.tensors.setdefault(target.id, self.tensors.get(value.id))
            return
        result = self.annotated(annotation)
        call = self._call(value, result)
        if call is not None:
            self.tensors[target.id] = result
            self.nodes[target.id] = Node(call, "", around.frames, around.layers)

    def annotated(self, annotation: ast.expr | None) -> Tensor | None:
        """The tensor of an annotation `"f32[32, 64][64, 1]cuda:0"`; None for other values."""
        if not isinstance(annotation, ast.Constant) or not isinstance(annotation.value, str):
            return None
        match = _ANNOTATION.search(annotation.value)
        if match is None or match[1] not in _TYPES:
            return None
        extents = [self._extent(part) for part in match[2].split(",") if part.strip()]
        return Tensor(tuple(extents), _TYPES[match[1]])

    def _extent(self, text: str) -> int:
        """The value of an extent: a number, or an expression of symbols."""
        text = text.strip()
        if text.isdecimal() and len(text) < len(str(_MOST_EXTENT)):
            return int(text)
        names = re.findall(r"[A-Za-z_]\w*", text)
        known = [self._symbols.get(name, _SYMBOL) for name in names]
        factors = [int(factor) for factor in re.findall(r"(?<![\w.])(\d{1,9})\s*\*", text)]
        return min(prod([*known[:1], *factors]), _MOST_EXTENT)

    def _call(self, value: ast.expr, result: Tensor | None) -> Call | None:
        if isinstance(value, ast.BinOp):
            name = _BINARY.get(type(value.op), "")
            operands = (Arg("", self._value(value.left)), Arg("", self._value(value.right)))
            return Call("aten", name, operands, result) if name else None
        if isinstance(value, ast.Subscript):  # `var_mean[0]` is a result, `x[0]` a view
            return Call("aten", "getitem", (Arg("", self._value(value.value)),), result)
        if not isinstance(value, ast.Call):
            return None
        module, name, owner = _called(value.func)
        args = [Arg("", self._value(arg)) for arg in value.args]
        args += [Arg(keyword.arg or "", self._value(keyword.value)) for keyword in value.keywords]
        if owner is not None:  # a method
            args.insert(0, Arg("", self._value(owner)))
        return Call(module, name, tuple(args), result)

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            tensor = self.tensors.get(node.id)
            return UNKNOWN if tensor is None else tensor
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(map(self._value, node.elts))
        try:
            value = ast.literal_eval(node)
        except _UNREADABLE:
            return UNKNOWN
        return value if value is None or isinstance(value, bool | int | float | str) else UNKNOWN


def _called(function: ast.expr) -> tuple[str, str, ast.expr | None]:
    """Module and name of a called function, and the object of a method.

    `torch.ops.aten.add.Tensor` is ("aten", "add"), `torch.ops.vllm.f.default` ("vllm", "f");
    functions of torch have the module "aten": their names are those of operators.
    """
    names: list[str] = []
    inner = function
    while isinstance(inner, ast.Attribute):
        names.insert(0, inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        names.insert(0, inner.id)
    match names:
        case ["torch", "ops", "higher_order", name, *_]:
            return "higher_order", name, None
        case ["torch", "ops", module, name, *_]:
            return module, name, None
        case [name]:
            return "aten", name, None
        case ["torch" | "operator" | "_operator" | "builtins" | "math", *_, name]:
            return "aten", name, None
        case [*_, name] if isinstance(function, ast.Attribute):
            return "aten", name, function.value
    return "aten", "", None


def stack_of(text: str) -> tuple[str, ...]:
    """The frames `FILE:LINE` of a stack as Python prints it, outermost first."""
    return tuple(f"{file}:{line}" for file, line in _FRAME.findall(text))


_FRAME: Final = regex(r'File "([^"\n]+)", line (\d+)')


def with_stacks(node: Node, stacks: tuple[tuple[str, ...], ...]) -> Node:
    """A node with the first of the stacks that end with its frame; itself if none does."""
    for stack in stacks if node.frames else ():
        if stack[-1:] == node.frames[-1:]:
            return replace(node, frames=stack)
    return node
