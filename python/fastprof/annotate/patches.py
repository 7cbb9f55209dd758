"""Reversible attribute replacements: `init` applies them to torch and `uninit` reverts them."""

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
    """A reversible change to the program."""

    def put(self) -> None:
        """Apply the change."""

    def put_again(self) -> None:
        """Apply the change again, unless other code has since replaced the attribute."""

    def take_off(self) -> None:
        """Restore the original, unless other code has since replaced the attribute."""

    def take_out(self) -> None:
        """If other code wrapped our replacement, make that wrapper call the original."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One attribute: owner, name, own value before (not an inherited one) and replacement."""

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
        # When the first instance of an optimizer class is made, torch wraps the class's `step` with
        # functools.wraps.
        standing = _standing(self.owner, self.name)
        if getattr(standing, "__wrapped__", None) is not self.after:
            return
        standing.__wrapped__ = self.before
        for cell in getattr(standing, "__closure__", None) or ():
            if cell.cell_contents is self.after:
                cell.cell_contents = self.before


@dataclass(frozen=True, slots=True)
class PatchOfC(Patch):
    """An attribute added to a C type, which Python cannot set."""

    def put(self) -> None:
        set_attribute(self.owner, self.name, self.after)

    def take_off(self) -> None:
        if _standing(self.owner, self.name) is self.after:
            delete_attribute(self.owner, self.name)


def _standing(owner: Any, name: str) -> Any:
    if isinstance(owner, FunctionType):  # __defaults__
        return getattr(owner, name)
    return vars(owner).get(name, _MISSING)


class Patches:
    """The changes in effect, in the order they were made."""

    def __init__(self) -> None:
        self._patches: list[Change] = []
        self._aside = 0  # number of open `aside` blocks, over all threads
        self._lock = threading.RLock()

    def replace(self, owner: Any, name: str, after: Any) -> None:
        """Replace an attribute."""
        self.make(Patch(owner, name, _standing(owner, name), after))

    def give(self, owner: type, name: str, value: Any) -> None:
        """Add an attribute to a C type."""
        self.make(PatchOfC(owner, name, _MISSING, value))

    def make(self, change: Change) -> None:
        """Apply a change and register it for reversal."""
        change.put()
        self._patches.append(change)

    def take_off(self) -> None:
        """Revert all changes, the last first."""
        while self._patches:
            patch = self._patches.pop()
            patch.take_off()
            patch.take_out()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Revert all changes within a block, for all threads."""
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
