"""Stored captures: a baseline to compare later ones with, and what they were over many commits."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import apsw

from fastprof._system.classes import NamedTuple
from fastprof._version import __version__
from fastprof.analysis.diff import old_store
from fastprof.analysis.diff.database import (
    BaselineError,
    database,
    file_of,
    is_filled,
    is_ours,
    memory,
)
from fastprof.analysis.diff.figures import PARTS, Figures, figures_of
from fastprof.analysis.diff.packing import Baseline, OtherSchemaError, clean, pack, unpack
from fastprof.errors import DAMAGED

__all__ = [
    "Baseline",
    "BaselineError",
    "Stored",
    "captures",
    "earlier",
    "is_store",
    "load",
    "remember",
    "save",
]
_MOST: Final = 1000  # pairs of predictions
_FIGURES: Final = ("steps", "step_ns", "busy_ns", "idle_ns", "mfu", "peak_bytes")


class Stored(NamedTuple):
    """A capture of a store, without its side.

    Parameters
    ----------
    id : its number, from 1, in the order of saving
    saved_ns : when, Unix time
    names : the files
    tags : texts by key
    version : of the fastprof that saved it
    measured : `--steps`, `--where`, `--trim`
    figures : its figures
    """

    id: int
    saved_ns: int
    names: tuple[str, ...]
    tags: Mapping[str, str]
    version: str
    measured: tuple[str | None, tuple[str, ...], str | None]
    figures: Figures

    def label(self) -> str:
        """Its number, and its tags if it has some, else its first file."""
        about = " ".join(f"{key}={value}" for key, value in self.tags.items())
        return f"{self.id} ({about or ', '.join(self.names[:1])})"


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a store: its file, or the directory that contains it."""
    if os.path.isdir(path):
        return is_filled(file_of(path)) or _old(file_of(path))
    return is_ours(path)


def save(
    baseline: Baseline,
    store: str | os.PathLike[str],
    tags: Mapping[str, str] | None = None,
    of_profiles: Sequence[tuple[float | None, float | None]] = (),
) -> tuple[Path, int]:
    """Add a capture to a store.

    Parameters
    ----------
    store : a file, or a directory; created if it does not exist
    tags : texts by key
    of_profiles : MFU and memory of each rank, see `fastprof.analysis.diff.profile_figures`

    Returns
    -------
    tuple of Path and int
        The file, and the number of the capture.

    Raises
    ------
    BaselineError
        The file cannot be written, or is no store.
    """
    path = file_of(store)
    figures = figures_of(baseline.side, of_profiles)
    with database(path, write=True, fill=lambda new: _migrate(new, path)) as connection:
        return path, _insert(connection, baseline, figures, tags or {}, __version__, time.time_ns())


def load(store: str | os.PathLike[str], which: str | int | None = None) -> Baseline:
    """A capture of a store, to compare with.

    which : its number, or KEY=VALUE: the newest with this tag; by default the newest

    Raises
    ------
    BaselineError
        There is none, or it is damaged or of another version.
    MissingDependencyError
        It is a Parquet file of an earlier fastprof, and pyarrow is not installed.
    """
    with _opened(store) as connection:
        row = _rows(connection, *_selection(which))
    if not row:
        what = "contains no capture" if which is None else f"contains no capture {which}"
        raise BaselineError(f"{os.fspath(store)}: {what}; fastprof history lists them")
    number, version, data = row[0]
    try:
        return unpack(data)
    except OtherSchemaError as error:
        raise BaselineError(
            f"{os.fspath(store)}: capture {number} was stored by fastprof {version}, which this "
            f"fastprof {__version__} cannot compare with; store it again with --save"
        ) from error
    except DAMAGED as error:
        raise BaselineError(
            f"{os.fspath(store)}: capture {number} is damaged; store it again with --save"
        ) from error


def captures(store: str | os.PathLike[str]) -> list[Stored]:
    """All captures of a store, the newest last.

    Raises
    ------
    BaselineError
        There is none, or the file is damaged.
    """
    columns = f"id, saved_ns, names, version, source, conditions, trim, {', '.join(_FIGURES)}"
    with _opened(store) as connection:
        rows = _rows(connection, f"SELECT {columns} FROM captures ORDER BY id")
        tags = _rows(connection, "SELECT capture, key, value FROM tags")
        parts = _rows(
            connection, "SELECT capture, kind, name, ns FROM parts ORDER BY capture, kind, ns DESC"
        )
    try:
        of_tags: dict[int, dict[str, str]] = {}
        for number, key, value in tags:
            of_tags.setdefault(number, {})[str(key)] = str(value)
        of_parts: dict[int, dict[str, dict[str, float]]] = {}
        for number, kind, name, ns in parts:
            kinds = of_parts.setdefault(number, {key: {} for key in PARTS})
            kinds[kind][str(name)] = float(ns)
        return [_stored(row, of_tags, of_parts) for row in rows]
    except DAMAGED as error:
        raise BaselineError(f"{os.fspath(store)}: is damaged or not a store of captures") from error


def earlier(store: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What plans predicted and what was measured in earlier comparisons, the latest last.

    Returns
    -------
    list of dict
        `before` and `after`, lists of names; `ids` of findings; `predicted_ns`, `measured_ns`.

    Raises
    ------
    BaselineError
        The file is damaged.
    """
    with _opened(store) as connection:
        rows = _rows(
            connection,
            "SELECT before, after, ids, predicted_ns, measured_ns FROM predictions ORDER BY rowid",
        )
    try:
        return [
            {
                **dict(zip(("before", "after", "ids"), map(_texts, row[:3]), strict=True)),
                "predicted_ns": int(row[3]),
                "measured_ns": int(row[4]),
            }
            for row in rows
        ]
    except DAMAGED as error:
        raise BaselineError(f"{os.fspath(store)}: is damaged or not a store of captures") from error


def remember(store: str | os.PathLike[str], pair: Mapping[str, Any]) -> None:
    """Keep a pair as in `earlier`, in place of that of the same captures.

    Raises
    ------
    BaselineError
        The file cannot be written, or is damaged.
    """
    with database(file_of(store), write=True) as connection:
        _remember(connection, pair)


def _opened(store: str | os.PathLike[str]) -> AbstractContextManager[apsw.Connection]:
    """A store for reading; one of an earlier version is migrated first."""
    path = file_of(store)
    if is_filled(path):
        return database(path)
    if not _old(path):
        raise BaselineError(
            f"{os.fspath(store)}: contains no baseline; store one with "
            "fastprof diff --baseline STORE --save CAPTURE"
        )
    if os.access(path.parent, os.W_OK):
        return database(path, fill=lambda new: _migrate(new, path))
    connection = memory()
    _migrate(connection, path)
    return connection


def _old(path: Path) -> bool:
    """Whether there is a Parquet file in place of the file of a store."""
    return (path.parent / old_store.FILE).is_file()


def _migrate(connection: apsw.Connection, path: Path) -> None:
    """Add the baseline of an earlier version, if one is beside a new store; it stays there."""
    if not _old(path) or path != file_of(path.parent):
        return
    baseline, version = old_store.load(path.parent)
    saved_ns = (path.parent / old_store.FILE).stat().st_mtime_ns
    _insert(connection, baseline, figures_of(baseline.side), {}, version, saved_ns)
    for pair in old_store.pairs(path.parent):
        _remember(connection, pair)


def _rows(connection: apsw.Connection, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
    """The rows of a statement, tuples of values of any types: the file may be of others."""
    return connection.execute(statement, values).fetchall()


def _selection(which: str | int | None) -> tuple[str, tuple[Any, ...]]:
    """The statement that selects a capture, and its values."""
    columns = "SELECT id, version, side FROM captures"
    if which is None:
        return f"{columns} ORDER BY id DESC LIMIT 1", ()
    key, equals, value = str(which).partition("=")
    if equals:
        tagged = "SELECT max(capture) FROM tags WHERE key = ? AND value = ?"
        return f"{columns} WHERE id = ({tagged})", (clean(key), clean(value))
    return f"{columns} WHERE id = ?", (key,)


def _insert(
    connection: apsw.Connection,
    baseline: Baseline,
    figures: Figures,
    tags: Mapping[str, str],
    version: str,
    saved_ns: int,
) -> int:
    try:
        side = pack(baseline)
    except ValueError as error:
        raise BaselineError(f"the capture cannot be stored: {error}") from error
    values = {
        "saved_ns": saved_ns,
        "names": json.dumps(baseline.side.names),
        "version": version,
        "source": baseline.steps and clean(baseline.steps),
        "conditions": json.dumps(baseline.where),
        "trim": baseline.trim and clean(baseline.trim),
        **{name: getattr(figures, name) for name in _FIGURES},
        "side": side,
    }
    places = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO captures ({', '.join(values)}) VALUES ({places})", tuple(values.values())
    )
    number = connection.last_insert_rowid()
    connection.executemany(
        "INSERT INTO tags VALUES (?, ?, ?)",
        [(number, clean(key), clean(value)) for key, value in tags.items()],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)",
        [
            (number, kind, clean(name), ns)
            for kind, times in figures.parts.items()
            for name, ns in times.items()
        ],
    )
    return number


def _remember(connection: apsw.Connection, pair: Mapping[str, Any]) -> None:
    texts = [json.dumps(list(pair[name])) for name in ("before", "after", "ids")]
    connection.execute(
        "INSERT OR REPLACE INTO predictions VALUES (?, ?, ?, ?, ?)",
        (*texts, pair["predicted_ns"], pair["measured_ns"]),
    )
    connection.execute(
        "DELETE FROM predictions WHERE rowid <= (SELECT max(rowid) FROM predictions) - ?", (_MOST,)
    )


def _stored(
    row: Sequence[Any],
    tags: Mapping[int, Mapping[str, str]],
    parts: Mapping[int, Mapping[str, Mapping[str, float]]],
) -> Stored:
    number, saved_ns, names, version, source, conditions, trim, steps, *numbers = row
    optional = [None if each is None else str(each) for each in (source, trim)]
    values = {
        name: None if each is None else float(each)
        for name, each in zip(_FIGURES[1:], numbers, strict=True)
    }
    figures = Figures(
        steps=None if steps is None else int(steps),
        **values,
        parts=parts.get(number, {key: {} for key in PARTS}),
    )
    return Stored(
        int(number),
        int(saved_ns),
        tuple(_texts(names)),
        tags.get(number, {}),
        str(version),
        (optional[0], tuple(_texts(conditions)), optional[1]),
        figures,
    )


def _texts(text: str) -> list[str]:
    """A list of texts from JSON."""
    values = json.loads(text)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("expected a list of texts")
    return values
