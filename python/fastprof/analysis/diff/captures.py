"""The captures that a comparison is given, measured: files, profiles, ranks of a run, baselines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from fastprof.analysis.diff.measure import side_of
from fastprof.analysis.diff.side import Side, combined
from fastprof.analysis.diff.store import Baseline, BaselineError, is_baseline, load
from fastprof.analysis.selection import Where
from fastprof.profile.load import open_with_host
from fastprof.profile.profile import Profile

__all__ = ["Capture", "Captures", "Opener", "sides_of"]

Path: TypeAlias = str | os.PathLike[str]
Capture: TypeAlias = Path | Profile | Side
Captures: TypeAlias = Capture | Sequence[Capture]
Opener: TypeAlias = Callable[[Path], Profile]


def sides_of(
    captures: Iterable[Captures],
    steps: str | None = None,
    where: Where | None = None,
    opened: Opener = open_with_host,
) -> list[Side]:
    """Measure captures in the same way.

    Parameters
    ----------
    captures : a sequence is the ranks of one run; a directory with a baseline is that baseline
    steps, where : by default those of the baseline; see `fastprof.diff`
    opened : opens a trace

    Raises
    ------
    BaselineError
        A baseline cannot be read, or was measured with other steps or another selection.
    """
    given = list(captures)
    conditions = _conditions(where)
    for i, each in enumerate(given):
        if isinstance(each, str | os.PathLike) and is_baseline(each):
            baseline = load(each)
            steps, conditions = _agreed(each, baseline, steps, conditions)
            given[i] = baseline.side
    return [_side(each, steps, conditions, opened) for each in given]


def _conditions(where: Where | None) -> tuple[str, ...]:
    """Conditions as texts KEY=PATTERN."""
    if isinstance(where, str):
        return (where,)
    if not isinstance(where, Mapping):
        return tuple(where or ())
    pairs = ((key, [of] if isinstance(of, str) else of) for key, of in where.items())
    return tuple(f"{key}={pattern}" for key, patterns in pairs for pattern in patterns)


def _agreed(
    path: Path, baseline: Baseline, steps: str | None, where: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """The steps and conditions of a baseline, which further captures are measured with."""
    for name, wanted, stored in (
        ("steps", steps, baseline.steps),
        ("where", where, baseline.where),
    ):
        if wanted and wanted != stored:
            raise BaselineError(
                f"{os.fspath(path)}: was stored with --{name} {_shown(stored)}, expected "
                f"{_shown(wanted)}; omit --{name}, or store the baseline again with it"
            )
    return baseline.steps, baseline.where


def _shown(value: str | tuple[str, ...] | None) -> str:
    return (value if isinstance(value, str) else " ".join(value or ())) or "unset"


def _side(captures: Captures, steps: str | None, where: tuple[str, ...], opened: Opener) -> Side:
    if isinstance(captures, Side):
        return captures
    if isinstance(captures, Profile):
        return side_of(captures, steps, where)
    if isinstance(captures, str | os.PathLike):
        return side_of(opened(captures), steps, where)
    return combined([_side(each, steps, where, opened) for each in captures])
