"""The columns of a report: selection by `-c`, and cells as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from fastprof.errors import UnknownColumnError
from fastprof.model.column_table import COLUMN_OF_KEY, COUNTER, ColumnInfo, counter_column

DEFAULT_KEYS = "idx,dir,sub,mod,op,kernel,params,sil"


def select(keys: str | Iterable[str]) -> list[ColumnInfo]:
    """Find the columns of `-c`: keys separated by commas, or the keys themselves.

    Raises
    ------
    UnknownColumnError
        A key is unknown, or the list is empty.
    """
    names = [key.strip() for key in keys.split(",")] if isinstance(keys, str) else list(keys)
    unknown = [name for name in names if name not in COLUMN_OF_KEY and not _is_counter(name)]
    if unknown or not names:
        what = ", ".join(map(repr, unknown)) or "(none)"
        raise UnknownColumnError(f"unknown column {what}; valid columns: {','.join(COLUMN_OF_KEY)}")
    return [counter_column(name) if _is_counter(name) else COLUMN_OF_KEY[name] for name in names]


def _is_counter(name: str) -> bool:
    return name.startswith(COUNTER) and len(name) > len(COUNTER)


def cell_text(column: ColumnInfo) -> Callable[[Any], str]:
    """The function that formats a value of a column of texts."""
    if column.kind != "texts":
        return str
    separator = "," if column.key == "trace" else ":"
    return lambda parts: separator.join(parts) or "-"


def short_cell_text(column: ColumnInfo) -> Callable[[Any], str]:
    """The same for aligned reports, where space is scarce."""
    return last_frame if column.key == "trace" else cell_text(column)


def last_frame(frames: tuple[str, ...]) -> str:
    """The last frame without its directory: `/a/train.py:310 step` becomes `train.py:310 step`."""
    return re.split(r"[/\\]", frames[-1])[-1] if frames else "-"
