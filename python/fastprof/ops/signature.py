"""Signatures of operators as text: `conv2d(x, weight, bias, _, stride=steps)`.

A signature maps the arguments of a call to the parameters of a formula. Its items, by position:

| item | meaning |
|---|---|
| `weight` | the argument at this position, or with this keyword, is the parameter `weight` |
| `mat2=right` | the keyword is `mat2`, the parameter `right` |
| `tensors*` | a list of tensors, which ranges and markers record flattened |
| `amax*?` | a list that may be empty |
| `others**` | last: all tensors among the remaining arguments |
| `@batch` | anywhere: a keyword-only parameter |
| `_` | an argument without effect on the cost, no tensor |
| `_table` | in fastprof's own formulas: a tensor, or none, without effect on the cost |
| `other` | in those without a parameter of this name: any argument without effect on the cost |
| `scale` | in those with a parameter `read`, which this is not: a tensor whose bytes count |
| `...` | last: the remaining arguments have no effect on the cost |

The first argument also has the keywords `input` and `self`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.regex import regex
from fastprof.model.call import UNKNOWN, Arg, Tensor

_FIRST: Final = ("input", "self")
_SLOT: Final = regex(r"(?:(\w+)=)?(\w+)(\*\??)?\Z")
_GATHERED: Final = regex(r"(\w+)\*\*\Z")
_TEXT: Final = regex(r"([\w:.]+)(?:\((.*)\))?\Z", re.DOTALL)


def name_of(text: str) -> str:
    """The operator's name in a signature; raises ValueError if the text is malformed."""
    return _parsed(text)[1]


def _parsed(text: str) -> re.Match[str]:
    match = _TEXT.match(text.strip())
    if match is None:
        raise ValueError(f"signature {text!r}: expected a name, or name(argument, ...)")
    return match


class Slot(NamedTuple):
    """One argument of a signature. `parameter` is None if it has no effect on the cost."""

    keyword: str
    parameter: str | None
    is_list: bool = False
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """Name of an operator, and the parameter of its formula for each argument.

    Parameters
    ----------
    name : str
        Op name, with its namespace if the text has one.
    slots : tuple of Slot
        The arguments in order of position.
    rest : bool
        Whether further arguments are allowed.
    gathered : str or None
        The parameter that takes the tensors among those, if any.
    named : tuple of Slot
        The keyword-only arguments.
    """

    name: str
    slots: tuple[Slot, ...]
    rest: bool = False
    gathered: str | None = None
    named: tuple[Slot, ...] = ()

    @classmethod
    def read(cls, text: str, parameters: tuple[Slot, ...]) -> Signature:
        """Parse a signature. A name alone has the `parameters` of its formula.

        Raises
        ------
        ValueError
            The text is malformed.
        """
        match = _parsed(text)
        if match[2] is None:
            return cls(match[1], parameters)
        items = [item.strip() for item in match[2].split(",")] if match[2].strip() else []
        named = tuple(_slot(text, item[1:]) for item in items if item.startswith("@"))
        items = [item for item in items if not item.startswith("@")]
        last = _GATHERED.match(items[-1]) if items else None
        rest = bool(items) and (last is not None or items[-1] == "...")
        slots = tuple(_slot(text, item) for item in items[: len(items) - rest])
        return cls(match[1], slots, rest, last[1] if last else None, named)

    @property
    def parameters(self) -> frozenset[str]:
        """The formula's parameters that the signature contains."""
        names = {slot.parameter for slot in (*self.slots, *self.named)} | {self.gathered}
        return frozenset(name for name in names if name is not None)

    def bind(self, args: Iterable[Arg]) -> Iterator[dict[str, Any]]:
        """Possible bindings of the arguments: values by parameter, without omitted arguments.

        There are several only if tensor lists are recorded flattened; the likeliest comes first.
        There are none if the call has too many arguments.
        """
        args = tuple(args)
        positional = [arg.value for arg in args if not arg.name]
        for values in self._spread(positional):
            bound: dict[str, Any] = {}
            for slot, value in zip(self.slots, values, strict=False):
                if slot.parameter is not None:
                    bound[slot.parameter] = value
            if self.gathered is not None:
                bound[self.gathered] = tuple(_tensors(values[len(self.slots) :]))
            if self._add_keywords(bound, args):
                yield bound

    def _add_keywords(self, bound: dict[str, Any], args: Iterable[Arg]) -> bool:
        # False if an argument is passed twice. Unknown keywords are ignored.
        by_keyword = {slot.keyword: slot for slot in (*self.slots, *self.named)}
        if self.slots:
            by_keyword = {**dict.fromkeys(_FIRST, self.slots[0]), **by_keyword}
        for arg in args:
            slot = by_keyword.get(arg.name) if arg.name else None
            if slot is None or slot.parameter is None:
                continue
            if slot.is_list and not isinstance(arg.value, tuple):
                bound[slot.parameter] = (*bound.get(slot.parameter, ()), arg.value)
            elif slot.parameter in bound:
                return False
            else:
                bound[slot.parameter] = arg.value
        return True

    def _spread(self, values: list[Any]) -> Iterator[list[Any]]:
        # One value per slot.
        lists = [slot for slot in self.slots if slot.is_list]
        if self._fits(values):
            yield values
        if not lists or not values:
            return
        needed = [slot for slot in lists if not slot.may_be_empty]
        for present in (lists, needed) if len(needed) < len(lists) else (lists,):
            single = len(self.slots) - len(present)  # an empty list takes one value, or none
            for given in range(min(single, len(values)), -1, -1):
                length, left = divmod(len(values) - given, max(len(present), 1))
                if left or not length:
                    continue
                spread = self._cut(values, present, length)
                if self._fits(spread) and _alike(self.slots, spread, present):
                    yield spread

    def _cut(self, values: list[Any], present: list[Slot], length: int) -> list[Any]:
        spread, place = [], 0
        for slot in self.slots:
            size = length if slot in present else 1
            if slot in present:
                spread.append(tuple(values[place : place + size]))
            elif slot.is_list:
                spread.append(())
                size = int(any(map(_stands_for_no_list, values[place : place + 1])))
            else:
                spread.extend(values[place : place + 1])
            place += size
        return spread + values[place:]

    def _fits(self, values: list[Any]) -> bool:
        # Whether list slots have lists, and ignored slots have no tensor.
        for slot, value in zip(self.slots, values, strict=False):
            is_list = isinstance(value, tuple) and all(
                tensor is None or isinstance(tensor, Tensor) for tensor in value
            )
            if slot.is_list and not is_list and value is not UNKNOWN:
                return False
            if slot.parameter is None and not _says_nothing(value):
                return False
        return self.rest or all(map(_says_nothing, values[len(self.slots) :]))


def _slot(text: str, item: str) -> Slot:
    match = _SLOT.match(item)
    if match is None:
        raise ValueError(
            f"signature {text!r}: expected name, keyword=name, name*, _ or ..., found {item!r}"
        )
    keyword, name, star = match.groups()
    parameter = None if name == "_" else name
    return Slot(keyword or name, parameter, bool(star), star == "*?")


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    # Tensors of known shape or type, also those in lists.
    for value in values:
        if isinstance(value, tuple):
            yield from _tensors(value)
        elif isinstance(value, Tensor) and not _says_nothing(value):
            yield value


def _stands_for_no_list(value: Any) -> bool:
    # How markers and torch ranges record an empty list.
    return value == () or (isinstance(value, Tensor) and _says_nothing(value))


def _alike(slots: tuple[Slot, ...], values: list[Any], present: list[Slot]) -> bool:
    # Whether corresponding tensors of the lists have equal shapes. From the third list on, a
    # required list may instead contain 0-dim tensors (step counts of an optimizer).
    lists = [both for both in zip(slots, values, strict=False) if both[0] in present]
    shapes = [[getattr(each, "shape", None) for each in value] for _, value in lists]
    return all(
        shape == shapes[0] or (i > 1 and not lists[i][0].may_be_empty and not any(shape))
        for i, shape in enumerate(shapes)
    )


def _says_nothing(value: Any) -> bool:
    """Whether a value can be ignored: it has no tensor of known shape or type."""
    if isinstance(value, tuple):
        return not any(isinstance(tensor, Tensor) for tensor in value)
    return not isinstance(value, Tensor) or not (value.shape or value.dtype)
