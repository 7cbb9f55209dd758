"""Steps of optimizers: the outermost calls of `Optimizer.step`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch._C._dynamo import eval_frame
from torch.nn import Parameter
from torch.optim import Optimizer

from fastprof._core._around import Around
from fastprof.annotate.patches import Patches


class OptimizerSteps:
    """Reports the outermost calls of `Optimizer.step`, when they have returned.

    torch wraps `step` of each class by `profile_hook_step` when its first object is made. A call
    that returns to another optimizer's `step` is part of it.

    Parameters
    ----------
    ended : (optimizer) -> None

    Attributes
    ----------
    is_expected : bool
        Whether the program has made an optimizer.
    """

    def __init__(self, ended: Callable[[Optimizer], None]) -> None:
        self.is_expected = False
        self._ended = ended
        self._thread = threading.local()
        self._patches = Patches()

    def install(self) -> None:
        """Watch the optimizers that the program makes from now on."""
        wrap = Optimizer.profile_hook_step

        def profile_hook_step(function: Callable[..., Any]) -> Any:
            path = f"{function.__module__}:{function.__qualname__}"
            self.is_expected = True
            return Around(wrap(function), path, self._enter, self._leave, eval_frame.set_eval_frame)

        self._patches.replace(Optimizer, "profile_hook_step", staticmethod(profile_hook_step))

    def close(self) -> None:
        """Leave optimizer classes made from now on as they are."""
        self._patches.revert()

    def _enter(self, _: Any) -> None:
        self._thread.depth = getattr(self._thread, "depth", 0) + 1

    def _leave(self, optimizer: Any) -> None:
        self._thread.depth -= 1
        if self._thread.depth == 0:
            self._ended(optimizer)


def parameters_of(optimizers: list[Optimizer]) -> list[Parameter]:
    """The parameters that the optimizers update."""
    return [each for one in optimizers for group in one.param_groups for each in group["params"]]
