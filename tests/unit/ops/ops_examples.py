"""Worked examples of op models: what the tests of this folder list and check.

An `EXAMPLES` list in such a module has calls with the expected FLOPs and bytes, written as explicit
arithmetic; long lists are tables of text, a call a line (`calls`). `test_examples.py` checks them,
and fails for registered operators without an example; also that the calls of a `MALFORMED` list
have no cost.
"""

import importlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import Cost, why_unknown, work
from unit.ops.ops_calls import aten, calls, python


class Example(NamedTuple):
    """A call and its expected cost. `params` is compared if given."""

    call: Call
    flops: int | None
    bytes: int | None
    params: str | None = None
    direction: str = "fprop"


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
    result = []
    for call in calls(table, values):
        result.append(Example(call, flops, moved, params, direction))
        if back is not None:
            result.append(Example(call, *back, params, "bprop"))
    return result


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
    result = (done.cost.flops, done.cost.bytes)
    params = done.parts[0].params if example.params is not None else None
    if result == (example.flops, example.bytes) and params == example.params:
        return None
    return f"{example}: {result}, {params}"


def check(example: Example) -> None:
    """Check that the model gives the FLOPs and bytes (and params) of the example."""
    assert difference(example) is None


# What takes the place of an argument: of another kind, of another shape, or not told.
ODD = (None, Tensor((3,), "float32"), Tensor((2, 2, 2), "float32"), Tensor((2,) * 4), 7, "x")


def failures(examples: Iterable[Example], odd: Sequence[Any] = ODD) -> Iterator[str]:
    """What formulas raise for examples with an odd argument, or with the first few alone."""
    for call in {repr(example.call): example.call for example in examples}.values():
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
