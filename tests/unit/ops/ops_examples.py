"""Worked examples of op models: what the tests of this folder list and check.

An `EXAMPLES` list in such a module has calls with the expected FLOPs and bytes, written as explicit
arithmetic; long lists are tables of text, a call a line (`calls`). `test_examples.py` checks them,
and fails for registered operators without an example; also that the calls of a `MALFORMED` list
have no cost.
"""

import importlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops import Cost, why_unknown, work


class Example(NamedTuple):
    """A call and its expected cost. `params` is compared if given."""

    call: Call
    flops: int | None
    bytes: int | None
    params: str | None = None
    direction: str = "fprop"


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


def both(
    names: str,
    *values: Any,
    moved: int | None,
    flops: int | None = 0,
    direction: str = "fprop",
    mod: str = "torch",
) -> list[Example]:
    """The same calls by their Python and ATen names."""
    return [
        Example(call, flops, moved, direction=direction)
        for name in names.split()
        for call in (python(mod, name, *values), aten(name, *values))
    ]


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
                arguments += [Arg("", each) for each in values[text[1:]]]
            else:
                arguments += [Arg(key or "", _value(text, values))] * int(times or 1)
        for name in names.split("|"):
            space, _, op = name.rpartition("::") if "::" in name else name.rpartition(".")
            yield Call(space or "aten", op, tuple(arguments))


def listed(
    table: str,
    values: Mapping[str, Any],
    flops: int | None,
    moved: int | None,
    params: str | None = None,
    *,
    direction: str = "fprop",
    back: tuple[int | None, int | None] | None = None,
) -> list[Example]:
    """All calls of a table, which have equal costs; also of their backward pass, if given."""
    found = []
    for call in calls(table, values):
        found.append(Example(call, flops, moved, params, direction))
        if back is not None:
            found.append(Example(call, *back, params, "bprop"))
    return found


class Rows:
    """Tables of calls with arguments of the same names, often those of a module.

    doors : by which modules operators are called; "aten" is a call by torch
    """

    def __init__(self, values: Mapping[str, Any], *doors: str) -> None:
        self._values, self._doors = values, doors or ("aten",)

    def __call__(
        self, table: str, flops: int | None, moved: int | None, params: str | None = None,
        direction: str = "fprop",
    ) -> list[Example]:  # fmt: skip
        """The calls of a table by each door; they have equal costs."""
        return [
            each._replace(call=replace(each.call, mod=door) if is_open else each.call)
            for each in listed(table, self._values, flops, moved, params, direction=direction)
            for is_open in [each.call.mod == "aten"]
            for door in (self._doors if is_open else [""])
        ]

    def back(self, table: str, flops: int | None, moved: int | None) -> list[Example]:
        """The backward passes of a table."""
        return self(table, flops, moved, direction="bprop")


def _value(text: str, values: Mapping[str, Any]) -> Any:
    if text in values:
        return values[text]
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("("):
        items = re.findall(r"(?:[^,()\[]|\([^()]*\)|\[[^]]*\])+", text[1:-1])
        return tuple(_value(each, values) for each in items)
    if text.startswith("'"):
        return text.strip("'")
    dtype, bracket, sizes = text.rstrip("]").partition("[")
    if bracket:
        shape = tuple(int(each) for each in sizes.split(",") if each)
        return Tensor(shape, _DTYPES.get(dtype, dtype))
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def cost(call: Call, direction: str = "fprop") -> Cost:
    """The cost of a call that has a formula."""
    done = work(call, direction)
    assert done is not None, why_unknown(call, direction)
    return done.cost


def exact(call: Call, direction: str = "fprop") -> bool:
    """Whether the cost of a call is no estimate."""
    return cost(call, direction).exact


def difference(example: Example) -> str | None:
    """How the model's FLOPs, bytes or params differ from the example's; None if they do not."""
    done = work(example.call, example.direction)
    if done is None:
        return f"{example}: {why_unknown(example.call, example.direction)}"
    found = (done.cost.flops, done.cost.bytes)
    params = done.parts[0].params if example.params is not None else None
    if found == (example.flops, example.bytes) and params == example.params:
        return None
    return f"{example}: {found}, {params}"


def check(example: Example) -> None:
    """Check that the model gives the FLOPs and bytes (and params) of the example."""
    assert difference(example) is None


# What takes the place of an argument: of another kind, of another shape, or not told.
ODD = (None, Tensor((3,), "float32"), Tensor((2, 2, 2), "float32"), Tensor((2,) * 4), 7, "x")


def failures(examples: Iterable[Example], odd: Sequence[Any] = ODD) -> Iterator[str]:
    """What formulas raise for examples with an odd argument, or with the first few alone."""
    for call in {repr(each.call): each.call for each in examples}.values():
        changed = [call.args[:place] for place in range(len(call.args))]
        for place, arg in enumerate(call.args):
            before, after = call.args[:place], call.args[place + 1 :]
            changed += [(*before, Arg(arg.name, each), *after) for each in odd]
        for each, direction in itertools.product(changed, ("fprop", "bprop")):
            told = why_unknown(replace(call, args=each), direction) or ""
            if told.startswith("its formula failed"):
                yield f"{call.op}, {each}: {told}"


def tables_of(attribute: str) -> dict[str, list[Any]]:
    """A list of each module of this folder that has it, in the order of their names."""
    here = Path(__file__).parent
    paths = [path for path in here.rglob("test_*.py") if not path.stem.endswith("_torch")]
    names = [".".join(path.relative_to(here).with_suffix("").parts) for path in paths]
    names.remove("test_examples")
    modules = {name: importlib.import_module(f"unit.ops.{name}") for name in sorted(names)}
    return {
        name: getattr(module, attribute)
        for name, module in modules.items()
        if hasattr(module, attribute)
    }


def all_examples() -> list[Example]:
    """The examples of all modules of this folder."""
    return [example for table in tables_of("EXAMPLES").values() for example in table]
