"""Parses PyProf's markers, which are dict literals: arguments, modules, call stacks."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fastprof._system.regex import regex
from fastprof.model.call import Arg, Call, Tensor
from fastprof.model.markers.frames import is_library_frame
from fastprof.model.markers.meaning import HAS_ARGUMENTS, Details, Kind, Meaning

_MARKER_START = regex(r"""\{\s*['"](?:mod|op|args|strRepr|traceMarker|funcStack)['"]\s*:""")

# The longest real markers (fused optimizer steps) have thousands of tensors of 75 characters each.
_LONGEST_MARKER = 1 << 20

_UNREADABLE = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def read_dict(label: str) -> Meaning | None:
    """The meaning of a dict literal; None if it is none of the three markers."""
    if not (_MARKER_START.match(label) and label.endswith("}") and len(label) <= _LONGEST_MARKER):
        return None
    try:
        fields = _literal_fields(label)
        mod, op, args = fields.get("mod"), fields.get("op"), fields.get("args")
        if isinstance(mod, str) and isinstance(op, str) and isinstance(args, list):
            call = Call(mod, op, tuple(_argument(arg) for arg in args))
            return Meaning(Kind.ARGUMENT, label, label, call, HAS_ARGUMENTS)
    except _UNREADABLE:
        return None
    module_repr = fields.get("strRepr")
    if isinstance(mod, str) and isinstance(module_repr, str):
        return Meaning(Kind.MODULE, label, label, details=Details(module_repr=module_repr))
    trace = fields.get("traceMarker")
    if isinstance(trace, list):
        frames = tuple(x for x in trace if isinstance(x, str) and not is_library_frame(x))
        stack = fields.get("funcStack")
        stack = stack if isinstance(stack, str) else None
        details = Details(frames, function_stack=stack)
        return Meaning(Kind.TRACE, label, label, details=details)
    return None


def parsed(text: str) -> ast.expr:
    """Parse an expression; raises as `ast.parse` does.

    Suppresses the parser's warnings, such as for `'C:\\d'`: the text is not the user's code.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


def _literal_fields(label: str) -> dict[str, Any]:
    """Parse a dict literal. Values in `args` that are not literals become None."""
    tree = parsed(label)
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
    """Fields of one argument; a field that is not a literal is None. None if it is not a dict."""
    if not isinstance(node, ast.Dict):
        return None
    return {
        key.value: _literal(value)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _literal(node: ast.expr) -> Any:
    for change in (None, _NAMED_FLOATS.visit):  # most have no such name
        with suppress(ValueError, TypeError):
            return ast.literal_eval(node if change is None else change(node))
    return None


class _NamedFloats(ast.NodeTransformer):
    """Replaces the bare names `inf` and `nan`, which list arguments contain, by floats."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(float(node.id)) if node.id in ("inf", "nan") else node


_NAMED_FLOATS = _NamedFloats()


def _argument(fields: Mapping[str, Any] | None) -> Arg:
    """One argument. An unreadable one has the value None, to keep the positions of the others."""
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
    """Convert a value to a type allowed in `call.Arg`: lists to tuples, other types to text."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, int) and value.bit_length() > 64:
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
