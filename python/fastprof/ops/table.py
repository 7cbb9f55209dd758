"""Rows: formulas whose cost is one expression, or only the tensors that are read and written.

    table_row('''
        x quantised by a given scale.
        FLOPs: 3 per element.
        Bytes: x and scale read, the result written.
        (out, x, scale): _C::static_scaled_fp8_quant aiter::static_per_tensor_quant
    ''')("x, scale, out?", Traffic(3, "x scale out/x'"))

    table_row('''
        Running sum of rows of x, by a function and a value for one of its parameters.
        ...
    ''')(running, flops=1)

The text has what the operator computes, its FLOPs and bytes, as a docstring, and after that the
operators by the order of their arguments (`fastprof.ops.registry.operators`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import Answer, Cost
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, fresh, moved, texts

_NAME: Final = re.compile(r"(?<![:\w])\w+")
# What ends the name of a parameter -> its type, and its default if it has one.
_TYPES: Final[dict[str, tuple[Any, Any]]] = {
    "": (Tensor, Parameter.empty),
    "?": (Tensor | None, None),
    "*": (tuple[Tensor, ...], Parameter.empty),
    "*?": (tuple[Tensor, ...], ()),
    "**?": (tuple[tuple[Tensor, ...], ...] | None, None),
    "~": (Any, None),
}


class Traffic:
    """A cost by the elements of one tensor, and the bytes of those that are read and written.

    Parameters
    ----------
    flops : int
        FLOPs for each element of the first tensor that is shown, or of the tensor `of`.
    moved : str
        Tensors that are read or written, as often as named: "x" by its own size, "x'" as a dense
        tensor of the shape and type of x, "x:int8" as one of another type, "x[]" as one element,
        "out/x" as out if the call passes it, else as x. Tensors that a call omits are not counted.
    shown : str
        Tensors in the params, by default the first of `moved`.
    back : Traffic or None
        That of the backward pass, with the same tensors in the params.
    exact : bool
        False for an estimate.
    """

    def __init__(
        self,
        flops: int,
        moved: str,
        shown: str = "",
        *,
        of: str = "",
        back: Traffic | None = None,
        exact: bool = True,
    ) -> None:
        self.flops, self.moved, self.exact = flops, moved.split(), exact
        self.shown = shown.split() or self.moved[:1]
        self.of, self.back = of or self.shown[0], back
        names: list[str] = _NAME.findall(f"{shown} {moved} {of}")
        names += ["direction", *back.names] if back else []
        self.names: tuple[str, ...] = tuple(dict.fromkeys(names))

    def __call__(self, *, direction: str = "fprop", **arguments: Any) -> Answer:
        """The cost and the params of a call."""
        shown = [tensor for name in self.shown for tensor in _tensors(arguments[name])]
        counted = self.back if self.back and direction == "bprop" else self
        return counted.cost(arguments), texts(*shown)

    def cost(self, arguments: dict[str, Any]) -> Cost:
        """The cost of a call in this direction."""
        count = elements(_tensors(arguments[self.of])[0].shape) if self.flops else 0
        read_or_written = [tensor for name in self.moved for tensor in _named(name, arguments)]
        return Cost(self.flops * count, moved(*read_or_written), self.exact)


def _named(name: str, arguments: dict[str, Any]) -> tuple[Tensor, ...]:
    given, _, otherwise = name.partition("/")
    key, _, dtype = given.partition(":")
    bare = key.rstrip("'[]")
    value = arguments[bare]
    if value is None and otherwise:
        return _named(otherwise, arguments)
    if given == bare:
        return _tensors(value)
    shape = () if key.endswith("[]") else None
    return tuple(fresh(tensor, shape, dtype) for tensor in _tensors(value))


def _tensors(value: Any) -> tuple[Tensor, ...]:
    if isinstance(value, tuple):
        return value
    return () if value is None else (value,)


def table_row(text: str) -> Callable[..., None]:
    """One row of a table: what follows it, `(takes, cost)`, registers its formula.

    Parameters
    ----------
    text : str
        The docstring of the formula, then its operators.

    Returns
    -------
    callable
        Takes a function and values for some of its parameters, `(product, flops=3)`; the formula
        has the others. Or takes parameters of the formula, "x, weight?, others*": tensors, optional
        ones, lists ("*?" may be omitted, "**?" is a list of lists), and "other~" for a value of any
        type; and a function of those that it names. With `direction` among them, or `both` true,
        such a row also applies to the backward pass.
    """
    module = sys._getframe(1).f_globals["__name__"]
    name = text.rpartition("):")[2].split()[0]

    def register(
        given: str | Callable[..., Any],
        cost: Callable[..., Any] | None = None,
        *,
        both: bool = False,
        **values: Any,
    ) -> None:
        if isinstance(given, str) and cost is not None:
            formula = _formula(given, cost, both)
        elif callable(given):
            formula = partial(given, **values)
        formula.__module__, formula.__name__, formula.__qualname__ = module, name, name
        operators(text)(formula)

    return register


def _formula(takes: str, cost: Callable[..., Any], both: bool) -> Callable[..., Any]:
    keys = [re.match(r"(\w+)(.*)", key.strip()) for key in takes.split(",") if key.strip()]
    types = {match[1]: _TYPES[match[2]] for match in keys if match is not None}
    wanted: tuple[str, ...] = getattr(cost, "names", ())
    if not wanted:
        wanted = cost.__code__.co_varnames[: cost.__code__.co_argcount]
    defaults = {key: default for key, (_, default) in types.items() if key in wanted}
    has_direction = both or "direction" in wanted

    def formula(**arguments: Any) -> Any:
        return cost(**{key: arguments.get(key, defaults.get(key)) for key in wanted})

    parameters = [
        Parameter(key, Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for key, (_, default) in types.items()
    ]
    direction = [Parameter("direction", Parameter.KEYWORD_ONLY)] if has_direction else []
    formula.__signature__ = Signature([*parameters, *direction])  # type: ignore[attr-defined]  # PEP 362
    formula.__annotations__ = {key: kind for key, (kind, _) in types.items()}
    return formula
