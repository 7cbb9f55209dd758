"""Which formula serves an operator: (module, op) of a call to a function that costs it.

A formula is a pure function of shapes, types and parameters. Its own parameters say what it needs:

    @op("my_module", "scale", aten=("mylib::scale",))
    def scale(x: Tensor, factor: Number = 1.0, *, direction: str) -> tuple[Cost, str]: ...

The same function serves both doors: a Python call of `my_module.scale`, by an argument marker, and
the operator `mylib::scale`, by a range of torch. Where an operator orders its arguments otherwise,
the name carries a signature (`fastprof.ops.signature`): `"mylib::scale(factor, x)"`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar, get_type_hints

from fastprof.errors import OpError
from fastprof.model.call import Call, Tensor
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.formula import AROUND, Formula
from fastprof.ops.out_forms import ATEN
from fastprof.ops.parameters import members
from fastprof.ops.signature import Signature, Slot
from fastprof.ops.unmodelled import UNMODELLED

__all__ = [
    "ATEN",
    "MODULES",
    "TORCH",
    "Formula",
    "argument",
    "find",
    "formulas",
    "generated",
    "has_model",
    "op",
    "why_unknown",
    "work",
]

DIRECTIONS: Final = frozenset({"fprop", "bprop"})
TORCH: Final = "torch"
_OPS: Final = "torch.ops."

# Where torch puts the same operator: a function, a method, a binding. An op name means one
# operator in all of them.
MODULES: Final = frozenset(
    {
        "operator",
        "Tensor",
        "torch",
        "torch.Tensor",
        "torch._C",
        "torch._C._nn",
        "torch._C._VariableFunctions",
        "torch.functional",
        "torch.linalg",
        "torch.nn.functional",
        "torch.special",
    }
)

Function = TypeVar("Function", bound=Callable[..., Any])
_TRITON: Final = re.compile(r"triton_[a-z]+_")


@dataclass(frozen=True)
class _Entry:
    formula: Formula
    signatures: tuple[Signature, ...]


_entries: dict[tuple[str, str], _Entry] = {}
_generated: dict[re.Pattern[str], tuple[str, str]] = {}
_answers: dict[str, Work | str] = {}
_MOST_ANSWERS: Final = 1 << 16


def op(module: str | None, *names: str, aten: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Register the decorated function as the cost of operators.

    Parameters
    ----------
    module : str or None
        Module of the Python calls, as argument markers write it in `mod`. "torch" stands for all
        modules of torch that hold the same functions (`fastprof.ops.registry.MODULES`).
    *names : str
        Names of the Python functions, each by itself or with a signature.
    aten : iterable of str
        Names of operators of torch, with their namespace ("mylib::my_op"; "aten::" may be left
        out), each by itself or with a signature. A name may come more than once: overloads.

    Returns
    -------
    callable
        A decorator that returns the function as it is.

    Raises
    ------
    OpError
        When a name has a formula already, or the function's parameters do not fit.

    Notes
    -----
    The function takes `Tensor` and plain values by name. Annotations are checked before it is
    called: `Tensor`, `Tensor | None`, `Tensors` (a list of them), `int`, `float`, `bool`, `str`,
    `Ints` (one or a tuple), `Number`; `| Unknown` lets in a value that the capture does not hold.
    What has no annotation takes any known value. A keyword parameter `direction` gets "fprop" or
    "bprop"; without it the function serves the forward pass only. A keyword-only parameter
    `result` gets the tensor that the call returned, `UNKNOWN` where the capture does not tell it:
    the size of what an index picks, for example. A keyword-only parameter `call` gets the whole
    `Call`. The function returns a `Cost`, a `Cost`
    and the params to print, or a `Work` where particular kernels do parts of it. Where it cannot
    tell, it raises `CannotModel`, and the report says `na`.
    """
    if isinstance(aten, str):
        raise OpError(f"aten={aten!r}: expected a list of names")

    def register(function: Function) -> Function:
        formula, slots = _formula(function)
        keyed: dict[tuple[str, str], list[Signature]] = {}
        for text in names:
            signature = _read(text, slots, formula)
            keyed.setdefault((_home(module), signature.name), []).append(signature)
        for text in aten:
            signature = _read(text, slots, formula)
            space, _, name = signature.name.rpartition("::")
            keyed.setdefault((space or ATEN, name), []).append(signature)
        if not keyed:
            raise OpError(f"{_name(function)}: no name of an operator is given")
        for key in keyed:
            if key in _entries:
                other = _name(_entries[key].formula.function)
                raise OpError(f"{_name(function)}: {'.'.join(key)} has a formula already, {other}")
        for key, signatures in keyed.items():
            _entries[key] = _Entry(formula, tuple(signatures))
        _answers.clear()
        return function

    return register


def generated(pattern: str, name: str) -> None:
    """Give names that a code generator makes the formula of one operator.

    Parameters
    ----------
    pattern : str
        A regular expression for whole names with their namespace, without the overload.
    name : str
        The operator whose formula and signatures they have, with its namespace.
    """
    space, _, op_name = name.rpartition("::")
    _generated[re.compile(pattern)] = (space, op_name)
    _key_of_generated.cache_clear()
    _answers.clear()


def _home(module: str | None) -> str:
    if not module or not isinstance(module, str):
        raise OpError(f"expected the module of the Python calls, found {module!r}")
    return TORCH if module in MODULES else module


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"


def _formula(function: Callable[..., Any]) -> tuple[Formula, tuple[Slot, ...]]:
    # The formula of a function, and its parameters as a signature.
    if not callable(function):
        raise OpError(f"expected a function, found {function!r}")
    name = _name(function)
    try:
        parameters = dict(inspect.signature(function).parameters)
        hints = get_type_hints(function)
    except (NameError, TypeError, ValueError) as error:
        raise OpError(f"{name}: its signature cannot be read: {error}") from None
    asked = _asked(parameters)
    for key in asked:
        del parameters[key]
    for each in parameters.values():
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise OpError(f"{name}: parameter {each} is neither plain nor keyword-only")
    allowed = {key: members(hints.get(key, Any)) for key in parameters}
    needed = {key for key, each in parameters.items() if each.default is each.empty}
    slots = tuple(Slot(key, key, _takes_list(allowed[key])) for key in parameters)
    return Formula(function, allowed, frozenset(needed), asked), slots


def _asked(parameters: dict[str, inspect.Parameter]) -> frozenset[str]:
    # What the call itself does not hold; before there was more, `direction` could be any parameter.
    return frozenset(
        key
        for key, each in parameters.items()
        if key == "direction" or (key in AROUND and each.kind is each.KEYWORD_ONLY)
    )


def _takes_list(allowed: frozenset[Any]) -> bool:
    return tuple[Tensor, ...] in allowed and Tensor not in allowed


def _read(text: str, slots: tuple[Slot, ...], formula: Formula) -> Signature:
    name = _name(formula.function)
    try:
        signature = Signature.read(text, slots)
    except (TypeError, ValueError) as error:
        raise OpError(f"{name}: {error}") from None
    given = signature.parameters
    strange = sorted(given - formula.allowed.keys())
    if strange:
        raise OpError(f"{name}: signature {text!r} names {strange[0]}, no parameter of its")
    missing = sorted(formula.needed - given)
    if missing:
        raise OpError(f"{name}: signature {text!r} leaves out {missing[0]}, which has no default")
    return signature


def _entry(call: Call) -> _Entry | None:
    if call.mod in MODULES:
        return _entries.get((TORCH, call.op))
    if call.mod.startswith(_OPS):  # the Python call of an operator has the operator's arguments
        namespace = call.mod.removeprefix(_OPS)
        return _entries.get((ATEN, call.op if namespace == ATEN else f"{namespace}::{call.op}"))
    name = call.op.split(".", 1)[0] if call.mod == ATEN else call.op  # without the overload
    entry = _entries.get((call.mod, name))
    if entry is None and call.mod == ATEN and _TRITON.match(name):
        return _entries.get((ATEN, "triton"))  # a kernel that torch.compile has named
    if entry is None:
        return _entries.get(_key_of_generated(f"{call.mod}::{name.split('.', 1)[0]}"))
    return entry


@lru_cache(maxsize=4096)
def _key_of_generated(whole: str) -> tuple[str, str]:
    keys = (key for pattern, key in _generated.items() if pattern.fullmatch(whole))
    return next(keys, ("", ""))


def find(call: Call) -> Formula | None:
    """Formula of the operator that is called, None when there is none."""
    entry = _entry(call)
    return None if entry is None else entry.formula


def argument(call: Call, parameter: str) -> Any:
    """What a call gives for a parameter of its operator's formula; None where that is not told."""
    entry = _entry(call)
    try:
        arguments = entry.formula.arguments(entry.signatures, call) if entry else {}
    except CannotModel:
        return None
    return arguments.get(parameter)


def formulas() -> list[tuple[Formula, dict[tuple[str, str], tuple[Signature, ...]]]]:
    """Each formula with what it serves: signatures by (module, op)."""
    served: dict[int, tuple[Formula, dict[tuple[str, str], tuple[Signature, ...]]]] = {}
    for key, entry in _entries.items():
        served.setdefault(id(entry.formula), (entry.formula, {}))[1][key] = entry.signatures
    return list(served.values())


def work(call: Call, direction: str) -> Work | None:
    """Work of a call in one direction.

    Parameters
    ----------
    call : Call
        The call, forward also where its backward pass is asked for.
    direction : str
        "fprop" for the work of the call itself, "bprop" for that of its backward pass.

    Returns
    -------
    Work or None
        None when the operator has no formula, it cannot read these arguments, or the operator has
        no backward pass; `why_unknown` tells which.

    Raises
    ------
    ValueError
        When the direction is neither. The call itself never raises, however malformed.
    """
    answer = _answer(call, direction)
    return answer if isinstance(answer, Work) else None


def why_unknown(call: Call, direction: str) -> str | None:
    """Why the cost of a call is not known, None when it is."""
    answer = _answer(call, direction)
    return None if isinstance(answer, Work) else answer


def _answer(call: Call, direction: str) -> Work | str:
    # The work, or why it is not known.
    if direction not in DIRECTIONS:
        raise ValueError(f"direction {direction!r} is not one of {sorted(DIRECTIONS)}")
    key = f"{direction} {call!r}"  # not the call itself: to Python 1, 1.0 and True are equal
    if key not in _answers:
        if len(_answers) >= _MOST_ANSWERS:
            _answers.clear()
        _answers[key] = _answer_now(call, direction)
    return _answers[key]


def _answer_now(call: Call, direction: str) -> Work | str:
    entry = _entry(call)
    if entry is None:
        return UNMODELLED.get(f"{call.mod}::{call.op.split('.', 1)[0]}", "no formula")
    try:
        return entry.formula.work(entry.signatures, call, direction)
    except CannotModel as error:
        return str(error)
    except Exception as error:  # a formula may be the user's own
        return f"its formula failed: {type(error).__name__}: {error}"


def has_model(call: Call) -> bool:
    """Whether the call's own work is known: it has a formula that can read its arguments."""
    return work(call, "fprop") is not None
