"""`fastprof._system.classes` makes what the dataclasses and named tuples of Python are."""

import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from functools import partial
from typing import Any

import pytest

from fastprof._system import classes

PLAIN: dict[str, Any] = {}
FROZEN = {"frozen": True}
SLOTS = {"frozen": True, "slots": True}
IDENTITY = {"frozen": True, "eq": False}
OPTIONS = [PLAIN, FROZEN, SLOTS, IDENTITY]

MAKERS: list[Callable[..., Any]] = [dataclasses.dataclass, classes.dataclass]


def point(maker: Callable[..., Any], options: dict[str, Any]) -> Any:
    @maker(**options)
    class Point:
        x: int
        y: float = 0.5
        tags: list[str] = field(default_factory=list)
        time: int = field(default=0, compare=False)
        secret: str = field(default="", repr=False)

        def doubled(self) -> int:
            return 2 * self.x

    return Point


def outcome(make: Callable[[], Any]) -> Any:
    """What a call returns, or the class of its error."""
    try:
        return make()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_instances_are_those_of_the_standard_library(options: dict[str, Any]) -> None:
    standard, own = (point(maker, options) for maker in MAKERS)
    for arguments, named in [
        ((1,), {}),
        ((1, 2.0, ["a"], 3, "s"), {}),
        ((1,), {"time": 7, "tags": ["b"]}),
        ((), {"x": 4}),
        ((), {}),
        ((1, 2.0), {"x": 1}),
        ((1,), {"z": 1}),
        ((1, 2.0, [], 3, "s", 5), {}),
    ]:
        of_both = [outcome(partial(c, *arguments, **named)) for c in (standard, own)]
        assert repr(of_both[0]) == repr(of_both[1])
        if isinstance(of_both[1], own):
            assert dataclasses.asdict(of_both[0]) == dataclasses.asdict(of_both[1])
            assert of_both[0].doubled() == of_both[1].doubled()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_comparison_hash_and_assignment_are_the_same(options: dict[str, Any]) -> None:
    def observed(c: Any) -> list[Any]:
        one, same, other = c(1, tags=()), c(1, tags=(), time=9), c(2, tags=())
        return [
            one == one,
            one == same,
            one == other,
            one == (1, 0.5, (), ""),
            outcome(lambda: hash(one) == hash(same)),
            outcome(lambda: setattr(one, "x", 3)),
            outcome(lambda: setattr(one, "unknown", 3)) in (None, FrozenInstanceError, TypeError),
            outcome(lambda: delattr(other, "x")),
            replace(same, x=5).time,
            copy.deepcopy(same).time,
            c.__match_args__,
        ]

    standard, own = (observed(point(maker, options)) for maker in MAKERS)
    assert standard == own


@classes.dataclass(frozen=True)
class Base:
    """A frozen class."""

    a: int

    def __repr__(self) -> str:
        return f"<{self.a}>"

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(self.a)


@classes.dataclass(frozen=True, slots=True)
class Slotted:
    """A frozen class without a dictionary."""

    a: int
    b: str = "b"


@classes.dataclass(frozen=True)
class Derived(Base):
    """A frozen class with a base."""

    b: int = 1


@classes.dataclass(kw_only=True)
class Named:
    """A class whose fields have names only."""

    a: int
    b: int = 1


class StandardPair(typing.NamedTuple):
    """A named tuple of the standard library."""

    a: int
    b: str = "b"

    @property
    def both(self) -> str:
        """Both fields."""
        return f"{self.a}{self.b}"


class OwnPair(classes.NamedTuple):
    """A named tuple."""

    a: int
    b: str = "b"

    @property
    def both(self) -> str:
        """Both fields."""
        return f"{self.a}{self.b}"


def test_own_methods_are_kept_and_called() -> None:
    assert repr(Base(1)) == "<1>"
    assert Derived(1) == Derived(1, 1) != Derived(1, 2)
    assert hash(Derived(1)) == hash(Derived(1, 1))
    with pytest.raises(ValueError, match="-1"):
        Derived(-1)


def test_fields_with_names_only_take_no_positional_value() -> None:
    assert Named(a=1) == Named(a=1, b=1)
    with pytest.raises(TypeError, match="0 positional"):
        Named(1)  # type: ignore[misc]
    with pytest.raises(TypeError, match="'a'"):
        Named(b=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "value", [Base(1), Derived(1, 2), Slotted(1), Named(a=1), OwnPair(1)], ids=repr
)
def test_instances_can_be_pickled_and_copied(value: Any) -> None:
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert again == value
        assert type(again) is type(value)


def test_the_signature_is_that_of_the_standard_library() -> None:
    standard, own = (inspect.signature(point(maker, FROZEN)) for maker in MAKERS)
    for one, other in zip(standard.parameters.values(), own.parameters.values(), strict=True):
        assert (one.name, one.kind, one.annotation) == (other.name, other.kind, other.annotation)
        assert (one.default is one.empty) == (other.default is other.empty)
    assert list(inspect.signature(Named).parameters) == ["a", "b"]


def test_named_tuples_are_those_of_the_standard_library() -> None:
    makers: tuple[Any, Any] = (StandardPair, OwnPair)
    for arguments, named in [
        ((1,), {}),
        ((1, "c"), {}),
        ((), {"b": "x", "a": 2}),
        ((1,), {"b": "x"}),
        ((), {}),
        ((1, "c", 3), {}),
        ((1,), {"a": 2}),
        ((1,), {"c": 2}),
        ((), {"c": 2, "b": 1}),
    ]:
        standard, own = (outcome(partial(make, *arguments, **named)) for make in makers)
        assert own == standard
        if not isinstance(own, type):
            assert (own.a, own.b, own.both, own._asdict()) == (
                *standard,
                standard.both,
                standard._asdict(),
            )
            assert repr(own) == repr(standard).replace("Standard", "Own")
            assert own._replace(a=5) == standard._replace(a=5)
            assert type(own._replace(a=5)) is OwnPair
            assert hash(own) == hash(standard)
            assert OwnPair._make(own) == own
    assert (OwnPair._fields, OwnPair._field_defaults) == (("a", "b"), {"b": "b"})
    assert OwnPair.__match_args__ == StandardPair.__match_args__
    with pytest.raises(AttributeError):
        OwnPair(1).a = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        OwnPair(1).c = 2  # type: ignore[attr-defined]


def test_no_method_is_compiled() -> None:
    methods = [var for var in vars(Derived).values() if inspect.isfunction(var)]
    assert len(methods) == 6
    assert {method.__code__.co_filename for method in methods} == {classes.__file__}
