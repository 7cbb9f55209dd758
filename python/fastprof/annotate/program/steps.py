"""Which calls end a step: those that repeat, and the outermost ones of `Optimizer.step`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch._C._dynamo import eval_frame
from torch.nn import Parameter
from torch.optim import Optimizer

from fastprof._core._around import Around
from fastprof._core._countdown import Countdown
from fastprof.annotate.patches import Patches

_LEARNED = 3  # calls of each object, when there are more objects than _FEW
_FEW = 8
_MOST_CALLS = 1 << 20


class RepeatedCall:
    """Finds the object whose calls end a step.

    Of several objects that a program calls in turn, such as the optimizers of a GAN, the one with
    the fewest calls ends a step; among equals, the one whose first call came last.

    Parameters
    ----------
    forgotten : () -> None, called before an object is freed
    """

    def __init__(self, forgotten: Callable[[], None]) -> None:
        self._forgotten = forgotten
        self._n_calls: dict[int, int] = {}  # by id, in order of the first call
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._last: int | None = None  # fixed if there are many objects

    def __len__(self) -> int:
        return len(self._n_calls)

    def called(self, each: Any) -> bool:
        """Count a call of an object; return whether it ends a step."""
        key = id(each)
        if self._last is not None:
            return key == self._last
        n_calls = self._n_calls.get(key, 0) + 1
        self._n_calls[key] = n_calls
        if n_calls == 1:
            self._alive[key] = weakref.ref(each, lambda _: self._forget(key))
        if n_calls >= _MOST_CALLS:  # forget what is long past
            self._n_calls = dict.fromkeys(self._n_calls, 0)
        fewest = min(self._n_calls.values())
        ends = n_calls == fewest and next(
            k for k in reversed(self._n_calls) if self._n_calls[k] == fewest
        ) == key  # fmt: skip
        if ends and n_calls >= _LEARNED and len(self._n_calls) > _FEW:
            self._last = key
        return ends

    @property
    def calls(self) -> tuple[list[Any], list[int]]:
        """The objects that were called, in order of the first call, and their calls.

        None if the object whose calls end steps is fixed.
        """
        if self._last is not None:
            return [], []
        objects = [(ref(), self._n_calls[key]) for key, ref in self._alive.items()]
        kept = [(each, n_calls) for each, n_calls in objects if each is not None]
        return [each for each, _ in kept], [n_calls for _, n_calls in kept]

    def counted(self, n_calls: list[int]) -> None:
        """Take over the calls of the objects in `calls` that were counted elsewhere."""
        self._n_calls.update(zip(self._n_calls, n_calls, strict=False))

    def _forget(self, key: int) -> None:
        self._forgotten()
        self._n_calls.pop(key, None)
        self._alive.pop(key, None)
        if self._last == key:
            self._last = None


class OptimizerSteps:
    """Reports the outermost calls of `Optimizer.step`, when they have returned.

    torch wraps `step` of each class by `profile_hook_step` when its first object is made. A call
    that returns to another optimizer's `step` is part of it.

    Parameters
    ----------
    ended : (optimizer) -> None; must not raise
    countdown : counts calls that need not be reported

    Attributes
    ----------
    is_expected : bool
        Whether the program has made an optimizer.
    """

    def __init__(self, ended: Callable[[Optimizer], None], countdown: Countdown) -> None:
        self.is_expected = False
        self._ended, self._countdown = ended, countdown
        self._patches = Patches()
        self._replaced: list[tuple[weakref.ref[type], Around]] = []

    def install(self) -> None:
        """Watch the optimizers that the program makes from now on, and those seen before."""
        wrap = Optimizer.profile_hook_step

        def profile_hook_step(function: Callable[..., Any]) -> Any:
            wrapped = wrap(function)
            try:
                self.is_expected = True
                path = f"{function.__module__}:{function.__qualname__}"
                return Around(
                    wrapped, path, None, self._ended, eval_frame.set_eval_frame, self._countdown
                )
            except Exception:  # the class is not watched
                return wrapped

        self._patches.replace(Optimizer, "profile_hook_step", staticmethod(profile_hook_step))
        while self._replaced:
            kind, around = self._replaced.pop()
            owner: Any = kind()
            if owner is not None and vars(owner).get("step") is around.__wrapped__:
                owner.step = around

    def close(self) -> None:
        """Leave optimizers as they are without us."""
        self._patches.revert()
        for kind in _kinds(Optimizer):
            step = vars(kind).get("step")
            if type(step) is Around:
                self._replaced.append((weakref.ref(kind), step))
                kind.step = step.__wrapped__


def parameters_of(optimizers: list[Optimizer]) -> list[Parameter]:
    """The parameters that the optimizers update."""
    return [param for one in optimizers for group in one.param_groups for param in group["params"]]


def _kinds(kind: Any) -> Iterator[Any]:
    """The class and all classes derived from it."""
    yield kind
    for inner in type.__subclasses__(kind):
        yield from _kinds(inner)
