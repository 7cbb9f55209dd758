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


class Replacement(Protocol):
    """A reversible change to the program."""

    def apply(self) -> None:
        """Apply the change."""

    def reapply(self) -> None:
        """Apply the change again, unless other code has since replaced the attribute."""

    def revert(self) -> None:
        """Restore the original, unless other code has since replaced the attribute."""

    def detach(self) -> None:
        """If other code wrapped our replacement, make that wrapper call the original."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One attribute: owner, name, own value before (not an inherited one) and replacement."""

    owner: Any
    name: str
    before: Any
    after: Any

    def apply(self) -> None:
        setattr(self.owner, self.name, self.after)

    def reapply(self) -> None:
        if _current(self.owner, self.name) is self.before:
            self.apply()

    def revert(self) -> None:
        if _current(self.owner, self.name) is not self.after:
            return
        if self.before is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)

    def detach(self) -> None:
        # When the first instance of an optimizer class is made, torch wraps the class's `step` with
        # functools.wraps.
        current = _current(self.owner, self.name)
        if getattr(current, "__wrapped__", None) is not self.after:
            return
        current.__wrapped__ = self.before
        for cell in getattr(current, "__closure__", None) or ():
            if cell.cell_contents is self.after:
                cell.cell_contents = self.before


@dataclass(frozen=True, slots=True)
class CTypePatch(Patch):
    """An attribute added to a C type, which Python cannot set."""

    def apply(self) -> None:
        set_attribute(self.owner, self.name, self.after)

    def revert(self) -> None:
        if _current(self.owner, self.name) is self.after:
            delete_attribute(self.owner, self.name)


def _current(owner: Any, name: str) -> Any:
    if isinstance(owner, FunctionType):  # __defaults__
        return getattr(owner, name)
    return vars(owner).get(name, _MISSING)


class Patches:
    """The changes in effect, in the order they were made."""

    def __init__(self) -> None:
        self._patches: list[Replacement] = []
        self._n_suspended = 0  # number of open `suspended` blocks, over all threads
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._patches)

    def replace(self, owner: Any, name: str, after: Any) -> None:
        """Replace an attribute."""
        self.apply(Patch(owner, name, _current(owner, name), after))

    def add(self, owner: type, name: str, value: Any) -> None:
        """Add an attribute to a C type."""
        self.apply(CTypePatch(owner, name, _MISSING, value))

    def apply(self, change: Replacement) -> None:
        """Apply a change and register it for reversal."""
        change.apply()
        self._patches.append(change)

    def revert(self) -> None:
        """Revert all changes, the last first."""
        while self._patches:
            patch = self._patches.pop()
            patch.revert()
            patch.detach()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Revert all changes within a block, for all threads."""
        with self._lock:
            self._n_suspended += 1
            if self._n_suspended == 1:
                for patch in reversed(self._patches):
                    patch.revert()
        try:
            yield
        finally:
            with self._lock:
                self._n_suspended -= 1
                if self._n_suspended == 0:
                    for patch in self._patches:
                        patch.reapply()
