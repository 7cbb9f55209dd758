"""Attributes that are replaced, and put back: what `init` does to torch and `uninit` takes away."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Patch:
    """An attribute: whose, its name, what stood there itself (not inherited), what stands now."""

    owner: Any
    name: str
    before: Any
    after: Any

    def put(self) -> None:
        setattr(self.owner, self.name, self.after)

    def take_off(self) -> None:
        """Put back what was there, unless somebody else has put another thing there since."""
        if vars(self.owner).get(self.name, _MISSING) is not self.after:
            return
        if self.before is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


class Patches:
    """All that is replaced now, in order."""

    def __init__(self) -> None:
        self._patches: list[Patch] = []

    def replace(self, owner: Any, name: str, after: Any) -> None:
        """Put something in an attribute's place."""
        before = vars(owner).get(name, _MISSING)
        patch = Patch(owner, name, before, after)
        patch.put()
        self._patches.append(patch)

    def take_off(self) -> None:
        """Put all back, the last first."""
        while self._patches:
            self._patches.pop().take_off()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within it all is as it was before."""
        patches = self._patches
        self._patches = []
        for patch in reversed(patches):
            patch.take_off()
        try:
            yield
        finally:
            for patch in patches:
                if vars(patch.owner).get(patch.name, _MISSING) is patch.before:
                    patch.put()
            self._patches = patches + self._patches


def own(owner: Any, name: str) -> Any:
    """An attribute as it stands in a class or module, descriptors not called."""
    return inspect.getattr_static(owner, name)
