"""The outermost modules that the program calls, `generate`, and its use of torch's profilers."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch._C._dynamo import eval_frame
from torch.autograd import profiler
from torch.nn import Module

from fastprof._core._around import Around, ReportedCalls
from fastprof._core._countdown import Countdown
from fastprof.annotate.patches import Patches
from fastprof.annotate.program.signals import is_of_handler

_MOST_CALLS = 64  # outermost calls to look at


class Outermost:
    """Reports the outermost calls of modules; without overhead for the calls inside.

    `Module.__call__` is replaced between the first outermost calls only, never during one. Then
    the classes of the modules found have an attribute of ours.

    Parameters
    ----------
    ended : (module) -> None, called after each outermost call, or after each `generate` if the
        program calls that
    met : (module) -> None, called before the first outermost call of a module
    countdown : counts calls that need not be reported
    """

    def __init__(
        self,
        ended: Callable[[Any], None],
        met: Callable[[Module], None] | None = None,
        countdown: Countdown | None = None,
    ) -> None:
        self._ended, self._met = ended, met
        countdown = Countdown(_ignored) if countdown is None else countdown
        self._calls = ReportedCalls(_traced, ended, countdown, eval_frame.set_eval_frame)
        self._found_ones: list[weakref.ref[Module]] = []
        self._patches = Patches()
        self._n_calls = self._depth = 0
        self._is_looking = False
        self._generating: type | None = None
        self._first_call = Around(
            _CALL,
            _PATH,
            partial(self.quietly, self._before),
            partial(self.quietly, self._after),
            eval_frame.set_eval_frame,
        )

    @property
    def found(self) -> list[Module]:
        """The outermost modules that were called and still exist."""
        return [each for each in (ref() for ref in self._found_ones) if each is not None]

    def look(self) -> None:
        """Look at the next outermost calls."""
        self._n_calls, self._is_looking = 0, True
        self._replace()

    def stop(self) -> None:
        """Stop looking, and report no calls of modules."""
        self._is_looking = False
        self._restore()
        self._calls.clear()

    def close(self) -> None:
        """Undo everything."""
        self.stop()
        self._patches.revert()

    def resume(self) -> None:
        """Report the calls of the modules found before again."""
        if self._generating is not None:
            self._report_generate(self._generating)
        else:
            for each in self.found:
                self._report(each)

    def _report(self, module: Module) -> None:
        self._calls.add(module)
        kind = type(module)
        if vars(kind).get(_COMPILED) is not self._calls:
            self._patches.replace(kind, _COMPILED, self._calls)

    def _replace(self) -> None:
        if vars(Module).get("__call__") is _CALL:  # the program may have replaced it
            Module.__call__ = self._first_call

    def _restore(self) -> None:
        if vars(Module).get("__call__") is self._first_call:
            Module.__call__ = _CALL

    def quietly(self, action: Callable[[Any], None], module: Module) -> None:
        """Look no more after an error of ours, which does not reach the program."""
        try:
            action(module)
        except Exception as error:
            if is_of_handler(error):
                raise
            self._is_looking = False

    def _before(self, module: Module) -> None:
        self._restore()
        if self._is_looking:
            self._found(module)

    def _after(self, _: Module) -> None:
        if self._is_looking:
            self._replace()

    def _found(self, module: Module) -> None:
        self._n_calls += 1
        if self._n_calls >= _MOST_CALLS:
            self._is_looking = False
        if any(each is module for each in self.found):
            return
        self._found_ones.append(weakref.ref(module))
        if self._met is not None:
            self._met(module)
        owner = _generating()
        if owner is not None:
            self._count_generate(owner)
        elif self._generating is None:
            self._report(module)

    def _count_generate(self, owner: type) -> None:
        """Count the calls of a class's `generate` from the next on."""
        if self._generating is not None:
            return
        self._generating = owner
        self._calls.clear()
        self._report_generate(owner)

    def _report_generate(self, owner: type) -> None:
        path = f"{owner.__module__}:{owner.__qualname__}.generate"
        function = vars(owner)["generate"]
        around = Around(function, path, self._enter, self._leave, eval_frame.set_eval_frame)
        self._patches.replace(owner, "generate", around)

    def _enter(self, _: Any) -> None:
        self._depth += 1

    def _leave(self, model: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._ended(model)


_CALL = Module.__call__
_PATH = "torch.nn:Module.__call__"
_COMPILED = "_compiled_call_impl"  # called in place of `_call_impl`, if it is not None


def _ignored(_: int) -> None:
    """The time at which a call ended."""


def _traced(module: Any, *arguments: Any, **options: Any) -> Any:
    """Stands in for `ReportedCalls` in torch.compile's trace."""
    return module._call_impl(*arguments, **options)


def _generating() -> type | None:
    """The class whose method `generate` the program is in, None if in none."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "generate":
            kind = type(frame.f_locals.get("self"))
            owner = next((each for each in kind.__mro__ if "generate" in vars(each)), None)
            if owner is not None:
                return owner
        frame = frame.f_back
    return None


_STARTS: Final = (
    (torch.profiler.profile, "__init__"),  # some programs then test whether one is active
    (profiler.profile, "_prepare_trace"),  # also of torch.profiler
    (profiler.emit_nvtx, "__enter__"),
    (profiler.emit_itt, "__enter__"),
)


class OwnProfilers:
    """Reports that the program is about to start a profiler, so that ours can end before.

    Parameters
    ----------
    starting : () -> None
    """

    def __init__(self, starting: Callable[[], None]) -> None:
        self._starting = starting
        self._patches = Patches()

    def install(self) -> None:
        """Report profilers from now on."""
        for kind, name in _STARTS:
            path = f"{kind.__module__}:{kind.__qualname__}.{name}"
            function = vars(kind)[name]
            around = Around(function, path, self._before, _nothing, eval_frame.set_eval_frame)
            self._patches.replace(kind, name, around)

    def close(self) -> None:
        """Report no more."""
        self._patches.revert()

    @staticmethod
    def are_active() -> bool:
        """Whether a profiler of the program records, in any thread, or is about to.

        One that warms up is prepared: torch does not tell, and another one would take its events.
        """
        return torch.autograd._profiler_enabled() or any(
            candidate.entered and candidate.kineto_results is None
            for candidate in gc.get_objects()
            if type(candidate) is profiler.profile
        )

    def _before(self, _: Any) -> None:
        self._starting()


def _nothing(_: Any) -> None:
    """Follows the start of a profiler."""
