"""The kernels that `where` selects: glob patterns on grouping keys."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence

import numpy as np

from fastprof.analysis import keys
from fastprof.analysis.columns import Columns
from fastprof.analysis.key_names import condition
from fastprof.model.arrays import Bools

__all__ = ["Where", "condition_texts", "keys_in", "selected"]

Where = Mapping[str, str | Sequence[str]] | Sequence[str]


def selected(source: Columns, where: Where | None) -> Bools | None:
    """bool [rows of the columns], or None if all are selected.

    where : patterns by key, or texts KEY=PATTERN and KEY!=PATTERN; patterns of one key are
        alternatives, keys are combined; the pattern `na` matches unknown values

    Raises
    ------
    ReportError
        A condition is malformed, or its key is unknown.
    """
    conditions = _conditions(where)
    if not conditions:
        return None
    rows = np.ones(len(source), bool)
    for (name, is_wanted), patterns in conditions.items():
        column = keys.key_of(source, name)
        match = re.compile("|".join(fnmatch.translate(each) for each in patterns)).match
        fits = [match(str(value)) is not None for value in column.values]
        rows &= np.array([*fits, match("na") is not None], bool)[column.ids] == is_wanted
    return rows


def keys_in(where: Where | None) -> list[str]:
    """The keys of the conditions.

    Raises
    ------
    ReportError
        A condition is malformed.
    """
    return [name for name, _ in _conditions(where)]


def condition_texts(where: Where | None) -> list[str]:
    """The conditions as texts KEY=PATTERN and KEY!=PATTERN."""
    if not isinstance(where, Mapping):
        return [where] if isinstance(where, str) else list(where or ())
    return [
        f"{key}={each}"
        for key, patterns in where.items()
        for each in ([patterns] if isinstance(patterns, str) else patterns)
    ]


def _conditions(where: Where | None) -> dict[tuple[str, bool], list[str]]:
    found: dict[tuple[str, bool], list[str]] = {}
    if isinstance(where, Mapping):
        for key, patterns in where.items():
            found[key, True] = [patterns] if isinstance(patterns, str) else list(patterns)
        return found
    for text in condition_texts(where):
        name, is_wanted, pattern = condition(text)
        found.setdefault((name, is_wanted), []).append(pattern)
    return found
