"""The kernels that `where` selects: glob patterns on grouping keys."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from fastprof.analysis import keys
from fastprof.analysis.grouping import Columns
from fastprof.analysis.key_names import condition
from fastprof.analysis.registry import Where
from fastprof.model.arrays import Bools
from fastprof.model.heading import nearest
from fastprof.profile.data import ProfileData, inside_part


def selected(source: Columns, where: Where | None) -> Bools | None:
    """bool [rows of the columns], or None if all are selected.

    The rows are those in the part of `Profile.trim`.

    where : patterns by key, or texts KEY=PATTERN and KEY!=PATTERN; patterns of one key are
        alternatives, keys are combined; the pattern `na` matches unknown values, a whole value
        itself

    Raises
    ------
    ReportError
        A condition is malformed, or its key is unknown.
    """
    conditions, rows = _conditions(where), _inside(source)
    if not conditions:
        return rows
    rows = np.ones(len(source), bool) if rows is None else rows.copy()
    for (name, is_wanted), patterns in conditions.items():
        column = keys.key_of(source, name)
        match = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns)).match
        values = map(str, column.values)  # a shape in brackets, copied from a table, is no pattern
        fits = [value in patterns or match(value) is not None for value in values]
        rows &= np.array([*fits, match("na") is not None], bool)[column.ids] == is_wanted
    return rows


def unmatched(source: Columns, where: Where | None) -> list[str]:
    """Why no row is selected, a line for each condition; empty if any row is.

    where : as in `selected`
    """
    rows = selected(source, where)
    if rows is None or rows.any():
        return []
    lines = []
    for (name, is_wanted), patterns in _conditions(where).items():
        for pattern in patterns:
            condition_text = f"{name}{'=' if is_wanted else '!='}{pattern}"
            rows = selected(source, [condition_text])
            if rows is not None and not rows.any():
                column = keys.key_of(source, name)
                values = sorted({str(value) for value in column.values})
                if (column.ids < 0).any():
                    values.append("na")
                lines.append(f"no work has {condition_text}: {_choices(pattern, values)}")
    return lines or [f"no work has {' and '.join(condition_texts(where))} at the same time"]


def _choices(pattern: str, values: list[str]) -> str:
    """The nearest values of a key, or some of them."""
    near = nearest(pattern, values)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
    return f"there is {', '.join(values[:_MOST_VALUES])}{more}"


_MOST_VALUES: Final = 12


def _inside(source: Columns) -> Bools | None:
    """The rows in the part of `Profile.trim`; None for all."""
    if isinstance(source, ProfileData):
        return inside_part(source)
    return getattr(source, "is_inside", None)


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
        f"{key}={text}"
        for key, patterns in where.items()
        for text in ([patterns] if isinstance(patterns, str) else patterns)
    ]


def _conditions(where: Where | None) -> dict[tuple[str, bool], list[str]]:
    conditions: dict[tuple[str, bool], list[str]] = {}
    if isinstance(where, Mapping):
        for key, patterns in where.items():
            conditions[key, True] = [patterns] if isinstance(patterns, str) else list(patterns)
        return conditions
    for text in condition_texts(where):
        name, is_wanted, pattern = condition(text)
        conditions.setdefault((name, is_wanted), []).append(pattern)
    return conditions
