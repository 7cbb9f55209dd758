"""What a decorated function declares: a formula, and signatures of operators.

A parameter of fastprof's own formulas whose type is a named tuple stands for its fields: a list of
parameters that several formulas share.

A module may register a hundred functions, and a capture calls a few of them. Annotations and
signatures of fastprof's own functions are therefore read on first use; those of other functions at
once, so that an error names the user's line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, get_type_hints

from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once
from fastprof.errors import OpError
from fastprof.model.call import Tensor
from fastprof.ops.formula import AROUND, READ, Formula, is_ignored
from fastprof.ops.parameters import members
from fastprof.ops.signature import Signature, Slot, name_of


class Repeat(NamedTuple):
    """How a script of `fastprof repro` calls an operator: import paths, None for torch's own way.

    Parameters
    ----------
    call : the function, or the module that defines the operator for torch's dispatcher
    make : the function that makes its arguments
    """

    call: str | None = None
    make: str | None = None


_AS_TORCH: Final = Repeat()


class Declaration:
    """A function that computes costs; its text is the function's import path.

    repeat : how to call its operators

    Raises
    ------
    OpError
        It is no function, or `repeat` has no import path.
    """

    def __init__(self, function: Callable[..., Any], repeat: Repeat | None = None) -> None:
        if not callable(function):
            raise OpError(f"expected a function, found {function!r}")
        self._function, self.repeat = function, repeat or _AS_TORCH
        for name, path in self.repeat._asdict().items() if repeat else ():
            if path is not None and not all(part.isidentifier() for part in path.split(".")):
                raise OpError(
                    f"{self}: {name}={path!r}: expected an import path, such as my_module.rope"
                )

    def __str__(self) -> str:
        function = self._function
        return f"{function.__module__}.{getattr(function, '__qualname__', function)}"

    @property
    def home(self) -> str:
        """The module of the function."""
        return self._function.__module__

    @property
    def is_builtin(self) -> bool:
        """Whether the function is fastprof's own."""
        return self.home.startswith(f"{__package__}.")

    @property
    def formula(self) -> Formula:
        """The formula; raises OpError if the function's parameters cannot be read."""
        return self._read[0]

    def name_in(self, text: str) -> str:
        """The operator's name in a signature; raises OpError if the text is malformed."""
        try:
            return name_of(text)
        except (TypeError, ValueError) as error:
            raise OpError(f"{self}: {error}") from None

    def signature(self, text: str) -> Signature:
        """The signature of a text; raises OpError if it does not fit the function."""
        formula, slots = self._read
        try:
            signature = Signature.read(text, slots)
        except (TypeError, ValueError) as error:
            raise OpError(f"{self}: {error}") from None
        given = signature.parameters
        strange = sorted(given - formula.allowed.keys())
        if self.is_builtin:
            strange = [key for key in strange if READ not in formula.asked and not is_ignored(key)]
        if strange:
            raise OpError(f"{self}: signature {text!r}: the function has no parameter {strange[0]}")
        missing = sorted(formula.needed - given)
        if missing:
            raise OpError(f"{self}: signature {text!r} omits {missing[0]}, which has no default")
        return signature

    @computed_once
    def _read(self) -> tuple[Formula, tuple[Slot, ...]]:
        # The formula, and the function's parameters as slots of a signature.
        function = self._function
        inner, given = function, {}
        if self.is_builtin and isinstance(function, partial):  # a row of a table
            inner, given = function.func, function.keywords
        try:
            parameters = dict(inspect.signature(function).parameters)
            # In a third of the time of `get_type_hints`, which converts more than needed here.
            is_plain = self.is_builtin and inspect.isfunction(inner)
            hints = (
                inspect.get_annotations(inner, eval_str=True) if is_plain else get_type_hints(inner)
            )
        except (NameError, TypeError, ValueError) as error:
            raise OpError(f"{self}: cannot read its Python signature: {error}") from None
        asked = _asked(parameters, AROUND | {READ} if self.is_builtin else AROUND) - given.keys()
        for key in (*asked, *given):
            parameters.pop(key, None)
        for parameter in parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise OpError(
                    f"{self}: parameter {parameter} must be positional-or-keyword or keyword-only"
                )
        # A parameter that is a named tuple stands for its fields.
        groups = {key: hints[key] for key in parameters if hasattr(hints.get(key), "_fields")}
        if not self.is_builtin:
            groups = {}
        allowed: dict[str, frozenset[Any]] = {}
        needed = set()
        for key, parameter in parameters.items():
            names, kinds = (key,), hints
            if key in groups:
                names, kinds = groups[key]._fields, get_type_hints(groups[key])
                needed |= set(names) - groups[key]._field_defaults.keys()
            elif parameter.default is parameter.empty:
                needed.add(key)
            allowed |= {name: members(kinds.get(name, Any)) for name in names}
        slots = tuple(
            Slot(key, key, tuple[Tensor, ...] in kinds and Tensor not in kinds, False)
            for key, kinds in allowed.items()
        )
        return Formula(function, allowed, frozenset(needed), asked, groups), slots


class Entry:
    """An operator: the function that serves it, and its signatures."""

    def __init__(self, declared: Declaration, texts: tuple[str, ...]) -> None:
        self.declared, self._texts = declared, texts

    @property
    def formula(self) -> Formula:
        """The operator's formula; raises OpError, see `Declaration`."""
        return self.declared.formula

    @computed_once
    def signatures(self) -> tuple[Signature, ...]:
        """The operator's signatures; raises OpError, see `Declaration`."""
        return tuple(self.declared.signature(text) for text in self._texts)


def _asked(parameters: dict[str, inspect.Parameter], special: frozenset[str]) -> frozenset[str]:
    # Parameters not filled from arguments. For compatibility, `direction` need not be keyword-only.
    return frozenset(
        key
        for key, parameter in parameters.items()
        if key == "direction" or (key in special and parameter.kind is parameter.KEYWORD_ONLY)
    )
