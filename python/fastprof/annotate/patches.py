"""Attributes that are replaced, and put back: what `init` does to torch and `uninit` takes away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Protocol

from fastprof._core._slots import delete_attribute, set_attribute

_MISSING = object()


class Change(Protocol):
    """Something of the program that is replaced."""

    def put(self) -> None:
        """Replace it."""

    def put_again(self) -> None:
        """Put it where it stood, unless somebody else has put another thing there since."""

    def take_off(self) -> None:
        """Put back what was there, unless somebody else has put another thing there since."""

    def take_out(self) -> None:
        """Let what somebody else put around ours call what ours called."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One attribute: of what, its name, what stood there itself, not inherited, what stands now."""

    owner: Any
    name: str
    before: Any
    after: Any

    def put(self) -> None:
        setattr(self.owner, self.name, self.after)

    def put_again(self) -> None:
        if _standing(self.owner, self.name) is self.before:
            self.put()

    def take_off(self) -> None:
        if _standing(self.owner, self.name) is not self.after:
            return
        if self.before is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)

    def take_out(self) -> None:
        # torch puts its own around the step of an optimizer's class, by functools.wraps, when it
        # makes the first one.
        standing = _standing(self.owner, self.name)
        if getattr(standing, "__wrapped__", None) is not self.after:
            return
        standing.__wrapped__ = self.before
        for cell in getattr(standing, "__closure__", None) or ():
            if cell.cell_contents is self.after:
                cell.cell_contents = self.before


@dataclass(frozen=True, slots=True)
class PatchOfC(Patch):
    """An attribute of a type in C, which it has not by itself and which Python cannot set."""

    def put(self) -> None:
        set_attribute(self.owner, self.name, self.after)

    def take_off(self) -> None:
        if _standing(self.owner, self.name) is self.after:
            delete_attribute(self.owner, self.name)


def _standing(owner: Any, name: str) -> Any:
    if isinstance(owner, FunctionType):  # its defaults
        return getattr(owner, name)
    return vars(owner).get(name, _MISSING)


class Patches:
    """All that is replaced now, in order."""

    def __init__(self) -> None:
        self._patches: list[Change] = []
        self._aside = 0  # in how many `aside` blocks the program is, in all threads
        self._lock = threading.RLock()

    def replace(self, owner: Any, name: str, after: Any) -> None:
        """Put something in an attribute's place."""
        self.make(Patch(owner, name, _standing(owner, name), after))

    def give(self, owner: type, name: str, value: Any) -> None:
        """Give a type in C an attribute that it does not have."""
        self.make(PatchOfC(owner, name, _MISSING, value))

    def make(self, change: Change) -> None:
        """Make a change that is undone with the others."""
        change.put()
        self._patches.append(change)

    def take_off(self) -> None:
        """Put all back, the last first."""
        while self._patches:
            patch = self._patches.pop()
            patch.take_off()
            patch.take_out()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within it all is as it was before, for all threads."""
        with self._lock:
            self._aside += 1
            if self._aside == 1:
                for patch in reversed(self._patches):
                    patch.take_off()
        try:
            yield
        finally:
            with self._lock:
                self._aside -= 1
                if self._aside == 0:
                    for patch in self._patches:
                        patch.put_again()
