"""`dataclass` and `NamedTuple` without generated source: a command imports 180 such classes.

Those of the standard library compile methods and annotations, in 0.5 and 0.1 ms for a class; the
methods here are closures over the names of the fields, which takes 0.02 and 0.01 ms. Type checkers
see the standard ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple", "dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:
    from _collections import _tuplegetter

    def dataclass(
        *, frozen: bool = False, eq: bool = True, slots: bool = False, kw_only: bool = False
    ) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, with the options that this package uses."""

        def decorate(cls: type) -> type:
            cls.__doc__ = cls.__doc__ or cls.__name__  # or its signature is made, in 0.2 ms
            standard = dataclasses.dataclass(
                init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
            )
            made = standard(cls)
            fields = dataclasses.fields(made)
            methods = {"__init__": _init(made, fields), "__repr__": _repr(fields)}
            if eq:
                values = _values([field.name for field in fields if field.compare])
                methods |= {"__eq__": _eq(values), "__hash__": _hash(values) if frozen else None}
            if frozen:
                methods |= {"__setattr__": _setattr, "__delattr__": _delattr}
            if frozen and slots:
                methods |= _state([field.name for field in fields])
            own = vars(made)
            for name, method in methods.items():
                if own.get(name) is None:
                    setattr(made, name, method)
            made.__signature__ = _Signature()
            return made

        return decorate

    class _MakesTuple(type):
        """The metaclass of `NamedTuple`, not of the classes that it makes."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            namespace |= {field: _tuplegetter(i, None) for i, field in enumerate(fields)}
            namespace |= {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            namespace |= {"__slots__": (), "__new__": _new(len(fields))}
            return type(name, (_NamedTuple,), namespace)

    NamedTuple = type.__new__(_MakesTuple, "NamedTuple", (), {"__doc__": "As typing.NamedTuple."})


class _NamedTuple(tuple[Any, ...]):
    """The methods of named tuples."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _field_defaults: dict[str, Any] = {}  # noqa: RUF012

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        return cls(*values)

    def _replace(self, **changes: Any) -> Any:
        return type(self)(**{**self._asdict(), **changes})

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        values = ", ".join([f"{name}={value!r}" for name, value in self._asdict().items()])
        return f"{type(self).__name__}({values})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


def _new(n_fields: int) -> Callable[..., Any]:
    store = tuple.__new__

    def __new__(cls: type[_NamedTuple], *values: Any, **named: Any) -> Any:
        if named or len(values) != n_fields:
            values = _values_of_tuple(cls, values, named)
        return store(cls, values)

    return __new__


def _values_of_tuple(
    cls: type[_NamedTuple], values: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """The values of all fields; those that are not given have their defaults.

    Raises
    ------
    TypeError
        A value is missing, given twice, or of no field.
    """
    fields = cls._fields
    given = {**cls._field_defaults, **dict(zip(fields, values)), **named}  # noqa: B905
    is_repeated = not named.keys().isdisjoint(fields[: len(values)])
    if is_repeated or len(values) > len(fields) or given.keys() != set(fields):
        raise TypeError(
            f"{cls.__qualname__}() takes {', '.join(fields)}; {len(values)} positional arguments "
            f"and {', '.join(named) or 'none by name'} given"
        )
    return tuple([given[name] for name in fields])


_store = object.__setattr__


def _init(cls: type, fields: tuple[Field[Any], ...]) -> Callable[..., None]:
    names = tuple([field.name for field in fields])
    n_fields, n_positional = len(names), sum([not field.kw_only for field in fields])
    after = getattr(cls, "__post_init__", None)

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        if named or len(values) != n_fields or n_positional != n_fields:
            values = _arguments(cls, fields, n_positional, values, named)
        for name, value in zip(names, values):  # noqa: B905  equally many
            _store(self, name, value)
        if after is not None:
            after(self)

    return __init__


def _arguments(
    cls: type,
    fields: tuple[Field[Any], ...],
    n_positional: int,
    values: tuple[Any, ...],
    named: dict[str, Any],
) -> tuple[Any, ...]:
    """The values of all fields; those that are not given have their defaults.

    Raises
    ------
    TypeError
        A value is missing, given twice, or of no field.
    """
    if len(values) > n_positional:
        raise TypeError(
            f"{cls.__qualname__}() takes {n_positional} positional arguments, {len(values)} given"
        )
    given = list(values)
    for field in fields[len(values) :]:
        if field.name in named:
            given.append(named.pop(field.name))
        elif field.default is not MISSING:
            given.append(field.default)
        elif field.default_factory is not MISSING:
            given.append(field.default_factory())
        else:
            raise TypeError(f"{cls.__qualname__}() misses the argument {field.name!r}")
    if named:
        raise TypeError(
            f"{cls.__qualname__}() got an unexpected or repeated argument {next(iter(named))!r}"
        )
    return tuple(given)


def _repr(fields: tuple[Field[Any], ...]) -> Callable[[Any], str]:
    names = [field.name for field in fields if field.repr]
    values = _values(names)
    template = f"%s({', '.join([f'{name}=%r' for name in names])})"

    def __repr__(self: Any) -> str:
        return template % (self.__class__.__qualname__, *values(self))

    return __repr__


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the values of the named fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _setattr(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(names: list[str]) -> dict[str, Callable[..., Any]]:
    """What copies and pickles need where attributes cannot be assigned."""

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            _store(self, name, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}


class _Signature:
    """The signature of the class that it is an attribute of, for `help`."""

    def __get__(self, instance: Any, owner: type) -> Any:
        from inspect import Parameter, Signature

        parameters = []
        for field in dataclasses.fields(owner):
            factory = field.default_factory
            default = field.default if factory is MISSING else factory
            parameters.append(
                Parameter(
                    field.name,
                    Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                    default=Parameter.empty if default is MISSING else default,
                    annotation=field.type,
                )
            )
        return Signature(parameters, return_annotation=None)
