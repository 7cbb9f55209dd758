"""Steps of optimizers: the outermost calls of `Optimizer.step`."""

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
    return [each for one in optimizers for group in one.param_groups for each in group["params"]]


def _kinds(kind: Any) -> Iterator[Any]:
    """The class and all classes derived from it."""
    yield kind
    for inner in type.__subclasses__(kind):
        yield from _kinds(inner)
