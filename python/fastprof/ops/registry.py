"""The registry of formulas: (module, op) of a call -> the function that computes its cost.

A formula is a pure function of shapes, types and parameters. Its signature declares its inputs:

    @op("my_module", "scale", aten=("mylib::scale",))
    def scale(x: Tensor, factor: Number = 1.0, *, direction: str) -> tuple[Cost, str]: ...

The function serves the Python call `my_module.scale`, recorded by an argument marker, and the
operator `mylib::scale`, recorded by a torch range. If an operator's arguments have another order,
register its name with a signature (`fastprof.ops.signature`): `"mylib::scale(factor, x)"`.

Which module registers the formula of an operator: a formula is imported when a call needs it.

`index.txt` is written by docs/make_ops.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from fastprof._system.regex import regex
from fastprof.errors import OpError
from fastprof.model.call import Call
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.declaration import Declaration, Entry, Repeat
from fastprof.ops.formula import Formula
from fastprof.ops.out_forms import ATEN
from fastprof.ops.signature import Signature
from fastprof.ops.unmodelled import UNMODELLED

FILE: Final = Path(__file__).with_name("index.txt")
# Lines: `module space name ...`, and `PATTERN expression space name` for generated names.
PATTERN: Final = "~"


def import_formula(key: tuple[str, str]) -> bool:
    """Import the module that registers an operator, (module of the call, name); False if none."""
    module = _modules().get(key[0], {}).get(key[1])
    if module is not None:
        import_module(f"fastprof.ops.{module}")
    return module is not None


def import_all() -> None:
    """Import the modules of all formulas."""
    for module in {name: None for names in _modules().values() for name in names.values()}:
        import_module(f"fastprof.ops.{module}")


def keys() -> list[tuple[str, str]]:
    """All operators with a formula of fastprof, in the order of the index."""
    return [(space, name) for _, space, names in _rows() for name in names]


@cache
def generated_names(namespace: str) -> dict[str, tuple[str, str]]:
    """Expressions for names of code generators, and the operator whose formula they have.

    namespace : of the names; those of another are left out
    """
    lines = [line.split(" ") for line in _lines() if line.startswith(PATTERN)]
    return {
        pattern: (space, name)
        for _, pattern, space, name in lines
        if re.fullmatch(pattern.partition("::")[0], namespace)
    }


@cache
def _modules() -> dict[str, dict[str, str]]:
    modules: dict[str, dict[str, str]] = {}
    for module, space, names in _rows():
        modules.setdefault(space, {}).update(dict.fromkeys(names, module))
    return modules


def _rows() -> list[tuple[str, str, list[str]]]:
    rows = (line.split(" ") for line in _lines() if not line.startswith(PATTERN))
    return [(module, space, names) for module, space, *names in rows]


@cache
def _lines() -> list[str]:
    return FILE.read_text("utf-8").splitlines()[1:]


TORCH: Final = "torch"
_OPS: Final = "torch.ops."

# Modules in which torch exposes the same operators: functions, methods, bindings. An op name
# denotes the same operator in all of them.
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
_TRITON: Final = regex(r"triton_[a-z]+_")
_GROUP: Final = re.compile(r"^ *(\([^()]*\)):", re.MULTILINE)  # of operators with these arguments
_IN_ORDER: Final = "(*)"


_entries: dict[tuple[str, str], Entry] = {}
GENERATED: Final[dict[str, tuple[str, str]]] = {}  # what imported modules assign
DIRECTIONS: Final = frozenset({"fprop", "bprop"})
_answers: Final[dict[str, dict[str, Work | str]]] = {direction: {} for direction in DIRECTIONS}
_MOST_ANSWERS: Final = 1 << 13


def op(
    module: str | None,
    *names: str,
    aten: Iterable[str] = (),
    call: str | None = None,
    make: str | None = None,
) -> Callable[[Function], Function]:
    """Register the decorated function as the cost formula of operators.

    Parameters
    ----------
    module : str or None
        Module of the Python calls, as in `mod` of argument markers. "torch" stands for all modules
        that expose torch's functions (`fastprof.ops.registry.MODULES`).
    *names : str
        Names of the Python functions, with or without a signature.
    aten : iterable of str
        Names of torch operators with their namespace ("mylib::my_op"; "aten::" is optional), with
        or without a signature. Repeat a name for overloads.
    call : str, optional
        For the scripts of `fastprof repro`: the import path of the function that runs the operator
        ("mylib.ops.my_op"), or of the module that defines it for torch ("mylib.ops").
    make : str, optional
        The import path of a function that makes the operator's arguments, where random values do
        not do. It gets those that the script made, `...` for what the trace lacks, and returns a
        list of all.

    Returns
    -------
    callable
        A decorator that returns the function unchanged.

    Raises
    ------
    OpError
        A name is already registered, the function's parameters do not match a signature, or `call`
        or `make` is no import path.

    Notes
    -----
    The function takes `Tensor` and plain values by name. Values are checked against its
    annotations: `Tensor`, `Tensor | None`, `Tensors` (a tuple of them), `int`, `float`, `bool`,
    `str`, `Ints` (an int or a tuple), `Number`. `| Unknown` also accepts a value that the capture
    does not record. A parameter without annotation accepts any known value.

    Special parameters: `direction` is "fprop" or "bprop"; without it, the function applies to the
    forward pass only. `result` (keyword-only) is the returned tensor, or `UNKNOWN` if not recorded,
    for results whose size depends on values. `call` (keyword-only) is the `Call`.

    The function returns a `Cost`, a `Cost` and the params to print, or a `Work` if particular
    kernels do parts of it. If it cannot determine the cost, it raises `CannotModel`, and the report
    shows `na`.
    """
    if isinstance(aten, str):
        raise OpError(f"aten={aten!r}: expected a list of names")

    def register(function: Function) -> Function:
        declared = Declaration(
            function, Repeat(call, make) if (call, make) != (None, None) else None
        )
        keyed: dict[tuple[str, str], list[str]] = {}
        for text in names:
            keyed.setdefault((_home(module), declared.name_in(text)), []).append(text)
        for text in aten:
            keyed.setdefault(_key_in_torch(declared.name_in(text)), []).append(text)
        _add(declared, keyed)
        return function

    return register


def operators(text: str) -> Callable[[Function], Function]:
    """Register the decorated function, a formula of fastprof, for a table of operators.

    Parameters
    ----------
    text : str
        The docstring of the function: what it computes, FLOPs and bytes. After that the operators,
        `(arguments): names` for each order of arguments (`fastprof.ops.signature`); `(*): names`
        for the order of the function's parameters. "add" is torch's function and ATen's operator,
        "torch.add" and "aten::add" are one of them; "package.module.name" is a function of another
        package, "fbgemm|fb::add" the operator of two namespaces.

    Returns
    -------
    callable
        A decorator that returns the function, with its docstring.

    Raises
    ------
    OpError
        A name is already registered.
    """
    told, *groups = _GROUP.split(text)

    def register(function: Function) -> Function:
        function.__doc__ = told
        in_python: dict[tuple[str, str], list[str]] = {}
        in_torch: dict[tuple[str, str], list[str]] = {}
        for arguments, names in zip(groups[::2], groups[1::2], strict=True):
            arguments = arguments.replace(_IN_ORDER, "")
            for name in _of_all_namespaces(names):
                module, dot, function_name = name.rpartition(".")
                signature = f"{function_name}{arguments}"
                if "::" not in name:
                    in_python.setdefault((module or TORCH, function_name), []).append(signature)
                if not dot:
                    signature = signature.removeprefix(f"{ATEN}::")
                    in_torch.setdefault(_key_in_torch(name), []).append(signature)
        _add(Declaration(function), {**in_python, **in_torch})
        return function

    return register


def _of_all_namespaces(names: str) -> Iterator[str]:
    # Names, with one for each namespace of "fbgemm|fb::add".
    for name in names.split():
        *others, last = name.split("|")
        yield from (f"{space}::{last.partition('::')[2]}" for space in others)
        yield last


def _key_in_torch(name: str) -> tuple[str, str]:
    space, _, op_name = name.rpartition("::")
    return space or ATEN, op_name


def _add(declared: Declaration, keyed: dict[tuple[str, str], list[str]]) -> None:
    entries = {key: Entry(declared, tuple(texts)) for key, texts in keyed.items()}
    if not entries:
        raise OpError(f"{declared}: expected a name of an operator, found none")
    is_builtin = declared.is_builtin
    if not is_builtin:
        for entry in entries.values():
            entry.signatures  # noqa: B018  raises
    for key in entries:
        other = _entries.get(key) if is_builtin else _registered(key)
        if other is not None:
            raise OpError(f"{declared}: {'.'.join(key)} already has a formula, {other.declared}")
    _entries.update(entries)
    if not is_builtin:  # fastprof's own are imported before the first answer
        for answers in _answers.values():
            answers.clear()


def generated(pattern: str, name: str) -> None:
    """Assign an operator's formula to names made by a code generator; `index.txt` keeps it.

    Parameters
    ----------
    pattern : str
        A regular expression that matches complete names with namespace, without overload.
    name : str
        The operator with the formula and signatures, with its namespace.
    """
    space, _, op_name = name.rpartition("::")
    GENERATED[pattern] = (space, op_name)
    _key_of_generated.cache_clear()


def _home(module: str | None) -> str:
    if not module or not isinstance(module, str):
        raise OpError(f"expected the module of the Python calls, found {module!r}")
    return TORCH if module in MODULES else module


def _registered(key: tuple[str, str]) -> Entry | None:
    """The entry of an operator; imports the module that registers it."""
    entry = _entries.get(key)
    if entry is None and import_formula(key):
        return _entries.get(key)
    return entry


def _entry(call: Call) -> Entry | None:
    return _registered(_key(call))


def _key(call: Call) -> tuple[str, str]:
    """What the operator is registered as, if it has a formula; imports none."""
    if call.mod in MODULES:
        return TORCH, call.op
    if call.mod.startswith(_OPS):  # Python calls of operators
        namespace = call.mod.removeprefix(_OPS)
        return ATEN, call.op if namespace == ATEN else f"{namespace}::{call.op}"
    key = call.mod, call.op.split(".", 1)[0] if call.mod == ATEN else call.op  # no overload
    if key in _entries or key[1] in _modules().get(key[0], ()):
        return key
    if call.mod != ATEN:
        return _key_of_generated(f"{call.mod}::{call.op.split('.', 1)[0]}")
    return (ATEN, "triton") if _TRITON.match(key[1]) else key  # a kernel name of torch.compile


@lru_cache(maxsize=4096)
def _key_of_generated(whole: str) -> tuple[str, str]:
    keys = (
        key
        for pattern, key in {**generated_names(whole.partition("::")[0]), **GENERATED}.items()
        if re.fullmatch(pattern, whole)
    )
    return next(keys, ("", ""))


def find(call: Call) -> Formula | None:
    """The formula of the called operator, or None."""
    entry = _entry(call)
    return None if entry is None else entry.formula


def home_of(call: Call) -> str | None:
    """The module of the formula that `find` returns; None if there is none. Imports none."""
    key = _key(call)
    if key in _entries:
        return _entries[key].declared.home
    module = _modules().get(key[0], {}).get(key[1])
    return None if module is None else f"fastprof.ops.{module}"


def repeat_of(call: Call) -> Repeat:
    """How a script can call the operator, see `op`."""
    entry = _entry(call)
    return Repeat() if entry is None else entry.declared.repeat


def arguments(call: Call) -> Mapping[str, Any]:
    """The values that a call passes by parameters of its formula, without what is not recorded."""
    entry = _entry(call)
    try:
        return entry.formula.arguments(entry.signatures, call) if entry else {}
    except CannotModel:
        return {}


def formulas() -> list[tuple[Formula, dict[tuple[str, str], tuple[Signature, ...]]]]:
    """Each formula with its operators: signatures by (module, op). Imports all of them."""
    import_all()
    served: dict[int, tuple[Formula, dict[tuple[str, str], tuple[Signature, ...]]]] = {}
    for key in dict.fromkeys([*keys(), *_entries]):
        entry = _entries[key]
        served.setdefault(id(entry.formula), (entry.formula, {}))[1][key] = entry.signatures
    return list(served.values())


def work(call: Call, direction: str) -> Work | None:
    """Work of a call in one direction.

    Parameters
    ----------
    call : Call
        The forward call, also for the cost of its backward pass.
    direction : str
        "fprop" for the call itself, "bprop" for its backward pass.

    Returns
    -------
    Work or None
        None if the operator has no formula or no backward pass, or if the formula rejects the
        arguments; `why_unknown` returns the reason.

    Raises
    ------
    ValueError
        The direction is invalid. A malformed call never raises.
    """
    answer = _answer(call, direction)
    return answer if isinstance(answer, Work) else None


def why_unknown(call: Call, direction: str) -> str | None:
    """Why the cost of a call is unknown; None if it is known."""
    answer = _answer(call, direction)
    return None if isinstance(answer, Work) else answer


def _answer(call: Call, direction: str) -> Work | str:
    # The work, or why it is unknown.
    answers = _answers.get(direction)
    if answers is None:
        raise ValueError(f"direction {direction!r} is not one of {sorted(DIRECTIONS)}")
    entry = _entry(call)
    if entry is None:
        return UNMODELLED.get(f"{call.mod}::{call.op.split('.', 1)[0]}", "no formula")
    identity = _identity_of(call)
    answer = answers.get(identity)
    if answer is None:
        if len(answers) >= _MOST_ANSWERS:
            answers.clear()
        answer = answers[identity] = _answer_now(entry, call, direction)
    return answer


def _identity_of(call: Call) -> str:
    """The identity of a call; that of the last one is kept, as several questions follow."""
    global _last
    last, identity = _last
    if last is not call:
        identity = call.identity
        _last = call, identity
    return identity


_last: tuple[Call | None, str] = (None, "")


def _answer_now(entry: Entry, call: Call, direction: str) -> Work | str:
    try:
        return entry.formula.work(entry.signatures, call, direction)
    except CannotModel as error:
        return str(error)
    except Exception as error:  # a formula may be the user's own
        return f"its formula failed: {type(error).__name__}: {error}"


def has_model(call: Call) -> bool:
    """Whether the work of the call itself is known."""
    return work(call, "fprop") is not None
