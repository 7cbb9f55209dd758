"""Tensors and calls of operators, for the examples of this folder; also as tables of text."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor


def python(mod: str, op: str, *values: Any, **named: Any) -> Call:
    """A Python call as in an argument marker."""
    args = [Arg("", value) for value in values]
    return Call(mod, op, (*args, *(Arg(name, value) for name, value in named.items())))


def aten(name: str, *values: Any) -> Call:
    """An operator of torch with all details of a trace; "aten::" is optional."""
    space, _, op = name.rpartition("::")
    return Call(space or "aten", op, tuple(Arg("", value) for value in values))


def sizes(name: str, *shapes: tuple[int, ...]) -> Call:
    """An operator of torch as in emit_nvtx: shapes only, () for non-tensors."""
    return aten(name, *map(Tensor, shapes))


def tensor(dtype: str, *shape: int) -> Tensor:
    return Tensor(shape, dtype)


def fp32(*shape: int) -> Tensor:
    return Tensor(shape, "float32")


def fp16(*shape: int) -> Tensor:
    return Tensor(shape, "float16")


def bf16(*shape: int) -> Tensor:
    return Tensor(shape, "bfloat16")


def int64(*shape: int) -> Tensor:
    return Tensor(shape, "int64")


_WORDS = {"_": UNKNOWN, "-": None, "true": True, "false": False}

_DTYPES = {
    "": None, "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8_e4m3fn",
}  # fmt: skip


def calls(table: str, values: Mapping[str, Any]) -> Iterator[Call]:
    """The calls of a table, one a line: `name argument ...`, in the order of the schema.

    A name of Python stands as `torch.nn.functional.linear`, one of torch as in `aten`. An argument
    is a key of `values`, a tensor as fp32[2,3] (with its shape alone, [2,3]; what is no tensor in a
    range, []), a number, true, false, - (none), _ (unknown), a text in quotes, or (a,b); a*3 stands
    for three of it, *a for those of a list, and key=a names it. Operators with the same arguments
    are one row: a|b.
    """
    for line in table.strip().splitlines():
        names, *words = line.split()
        arguments: list[Arg] = []
        for word in words:
            key, text, times = re.fullmatch(r"(?:(\w+)=)?(.+?)(?:\*(\d+))?", word).groups()
            if text.startswith("*"):
                arguments += [Arg("", value) for value in values[text[1:]]]
            else:
                arguments += [Arg(key or "", _value(text, values))] * int(times or 1)
        for name in names.split("|"):
            space, _, op = name.rpartition("::") if "::" in name else name.rpartition(".")
            yield Call(space or "aten", op, tuple(arguments))


def _value(text: str, values: Mapping[str, Any]) -> Any:
    if text in values:
        return values[text]
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("("):
        items = re.findall(r"(?:[^,()\[]|\([^()]*\)|\[[^]]*\])+", text[1:-1])
        return tuple(_value(item, values) for item in items)
    if text.startswith("'"):
        return text.strip("'")
    dtype, bracket, sizes = text.rstrip("]").partition("[")
    if bracket:
        shape = tuple(int(part) for part in sizes.split(",") if part)
        return Tensor(shape, _DTYPES.get(dtype, dtype))
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
