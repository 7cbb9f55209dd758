"""The captures that a comparison is given, measured: files, profiles, ranks of a run, baselines."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from fastprof._system import memory
from fastprof._system.forked import ForkedCall
from fastprof._system.threads import SecondThread, Task
from fastprof.analysis.diff.measure import side_of
from fastprof.analysis.diff.side import Side, combined
from fastprof.analysis.diff.store import BaselineError, is_store, load
from fastprof.analysis.registry import Where
from fastprof.errors import FastprofError
from fastprof.profile.data import ProfileData
from fastprof.profile.load import load as load_trace

Path: TypeAlias = str | os.PathLike[str]
Capture: TypeAlias = Path | ProfileData | Side
Captures: TypeAlias = Capture | Sequence[Capture]
Opener: TypeAlias = Callable[[Path], ProfileData]


def _load(path: Path) -> ProfileData:
    return load_trace(ProfileData, path, host=True)


def sides_of(
    captures: Iterable[Captures],
    steps: str | None = None,
    where: Where | None = None,
    opened: Opener = _load,
) -> list[Side]:
    """Measure captures in the same way.

    Parameters
    ----------
    captures : a sequence is the ranks of one run; a store is its newest capture
    steps, where : by default those of the baseline; see `fastprof.diff`
    opened : opens a trace

    Raises
    ------
    BaselineError
        A baseline cannot be read, or was measured with other steps or another selection.
    """
    given = list(captures)
    conditions = conditions_of(where)
    for i, each in enumerate(given):
        if isinstance(each, str | os.PathLike) and is_store(each):
            baseline = load(each)
            steps = agreed(each, "steps", steps, baseline.steps)
            conditions = agreed(each, "where", conditions, baseline.where)
            given[i] = baseline.side
    first, others = given[: len(given) // 2], given[len(given) // 2 :]
    measured = partial(_measured, steps, conditions, opened)
    has_plan = _fit_in_memory(given)
    if not _pays_to_fork(first, others):
        return measured(given, has_plan)
    with ForkedCall(partial(measured, others)) as forked:
        return [*measured(first, has_plan), *forked.result()]


def _measured(
    steps: str | None,
    where: tuple[str, ...],
    opened: Opener,
    given: Iterable[Captures],
    has_plan: bool = False,
) -> list[Side]:
    """The sides; with `has_plan`, the first one can make its plan."""
    with _Measuring(steps, where, opened) as measuring:
        results = [measuring.start(each, has_plan and i == 0) for i, each in enumerate(given)]
        return [side() for side in results]


def _fit_in_memory(given: Iterable[Captures]) -> bool:
    """Whether the first capture can stay open while the others are measured."""
    sizes = [value for value in chain.from_iterable(map(_sizes, given)) if value < math.inf]
    return 3 * _TIMES_FILE * max(sizes, default=0.0) < memory.available()[0]


def _pays_to_fork(first: Iterable[Captures], others: Iterable[Captures]) -> bool:
    """Whether both parts are traces that are large, but small enough to be open together."""
    sizes = [list(chain.from_iterable(map(_sizes, part))) for part in (first, others)]
    smaller, largest = min(map(sum, sizes)), max(chain.from_iterable(sizes), default=0.0)
    return smaller >= _LARGE and 2 * _TIMES_FILE * largest < memory.available()[0]


def _sizes(captures: Captures) -> Iterator[float]:
    """The sizes of traces in bytes; infinity for what is in memory already."""
    if isinstance(captures, Side | ProfileData):
        yield math.inf
    elif isinstance(captures, str | os.PathLike):
        yield _size(captures)
    else:
        yield from chain.from_iterable(map(_sizes, captures))


def conditions_of(where: Where | None) -> tuple[str, ...]:
    """Conditions as texts KEY=PATTERN."""
    if isinstance(where, str):
        return (where,)
    if not isinstance(where, Mapping):
        return tuple(where or ())
    pairs = ((key, [of] if isinstance(of, str) else of) for key, of in where.items())
    return tuple(f"{key}={pattern}" for key, patterns in pairs for pattern in patterns)


Option = TypeVar("Option", str | None, tuple[str, ...])


def agreed(path: Path, name: str, wanted: Option, stored: Option) -> Option:
    """An option of a baseline, which further captures are measured with.

    Raises
    ------
    BaselineError
        Another value is wanted.
    """
    if wanted and wanted != stored:
        raise BaselineError(
            f"{os.fspath(path)}: was stored with --{name} {_shown(stored)}, expected "
            f"{_shown(wanted)}; omit --{name}, or store the baseline again with it"
        )
    return stored


def _shown(value: str | tuple[str, ...] | None) -> str:
    return (value if isinstance(value, str) else " ".join(value or ())) or "unset"


class _Measuring:
    """Measures captures on a second thread while the next trace is opened.

    At most two profiles are in memory; one, if the files are large for this machine.
    """

    def __init__(self, steps: str | None, where: tuple[str, ...], opened: Opener) -> None:
        self._steps, self._where, self._opened = steps, where, opened
        self._second = SecondThread()
        self._last: Task[Side] | None = None

    def __enter__(self) -> _Measuring:
        return self

    def __exit__(self, *exception: object) -> None:
        self._second.__exit__(*exception)

    def start(self, captures: Captures, has_plan: bool = False) -> Callable[[], Side]:
        """Begin to measure captures; the result waits for the side.

        has_plan : whether the side can make its plan; those of several ranks cannot
        """
        if isinstance(captures, Side):
            return lambda: captures
        if isinstance(captures, ProfileData):
            return self._submit(captures, has_plan)
        if isinstance(captures, str | os.PathLike):
            if _TIMES_FILE * _size(captures) >= memory.available()[0]:
                self._wait()
            try:
                profile = self._opened(captures)
            except FastprofError:
                self._wait()  # its error comes first
                raise
            return self._submit(profile, has_plan)
        has_plan = has_plan and len(captures) == 1
        results = [self.start(capture, has_plan) for capture in captures]
        return lambda: combined([side() for side in results])

    def _submit(self, profile: ProfileData, has_plan: bool) -> Callable[[], Side]:
        self._wait()
        self._last = self._second.submit(side_of, profile, self._steps, self._where, has_plan)
        return self._last.result

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()


def _size(path: Path) -> float:
    return os.path.getsize(path) if os.path.exists(path) else math.inf


_TIMES_FILE: Final = 4  # a profile takes up to 1.5 times the size of an export
_LARGE: Final = 16 << 20  # bytes; smaller ones take less than a fork
