"""What reports and the page need, computed on other threads before they ask for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from fastprof._system.threads import SecondThread, Task
from fastprof.profile.data import ProfileData


@contextmanager
def computing(profile: ProfileData, needs: Sequence[str]) -> Iterator[None]:
    """Compute what a report needs, each need of `_AHEAD` on a thread of its own.

    Who asks for a result waits for its thread, and gets its error. What an earlier report of the
    profile needed is not computed again.

    needs : names in `_AHEAD` and `_AT_ONCE`
    """
    begun: set[str] = profile.source.kept.setdefault(computing, set())
    new = [need for need in needs if need not in begun]
    begun.update(new)
    with ExitStack() as threads:
        for need in new:
            if need in _AHEAD:
                threads.enter_context(SecondThread()).submit(_AHEAD[need], profile)
        for need in new:
            if need in _AT_ONCE:
                _AT_ONCE[need](profile)
        yield


def _compute_costs(profile: ProfileData) -> None:
    _compute_columns(profile, "flops", "bytes", "call")


def _compute_calls(profile: ProfileData) -> None:
    _compute_columns(profile, "op", "call")


def _compute_columns(profile: ProfileData, *names: str) -> None:
    for name in names:
        if name in profile.names:
            profile.column(name)


def _read_host_side(profile: ProfileData) -> None:
    """Read the ranges and API calls, which takes as long as the costs."""
    if len(profile) and "start" in profile.names:
        profile.api  # noqa: B018  kept


def _count_contents(profile: ProfileData) -> None:
    profile.contents  # noqa: B018  kept


# `costs`: FLOPs and bytes of calls; `calls`: operators; `host`: API calls and times of ranges;
# `contents`: what footers count.
_AHEAD: Final[dict[str, Callable[[ProfileData], None]]] = {
    "costs": _compute_costs,
    "calls": _compute_calls,
    "host": _read_host_side,
}
_AT_ONCE: Final[dict[str, Callable[[ProfileData], None]]] = {"contents": _count_contents}


class Ahead:
    """Calls functions on a second thread, in the order of `begin`, ahead of who needs the results.

    A context manager: leaving it cancels what has not started.
    """

    def __init__(self) -> None:
        self._second = SecondThread()
        self._tasks: dict[Hashable, Task[Any]] = {}

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *exception: object) -> None:
        self._second.__exit__(*exception)

    def begin(self, key: Hashable, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function when those before it are done."""
        self._tasks[key] = self._second.submit(function, *arguments)

    def result(self, key: Hashable, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `begin` with this key; calls the function here if it has not begun."""
        task = self._tasks.pop(key, None)
        if task is None or task.cancel():
            return function(*arguments)
        return task.result()
