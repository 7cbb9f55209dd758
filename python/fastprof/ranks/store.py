"""A directory of summaries as Parquet files, one per trace, so unchanged traces are read once.

A row is a group of kernels. Properties of the trace are in the schema's metadata.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from fastprof._system.optional import import_optional
from fastprof._system.output_file import output_file
from fastprof._version import __version__
from fastprof.errors import DAMAGED, FastprofError
from fastprof.model.columns import Values
from fastprof.ranks.files import TraceFile, source_of
from fastprof.ranks.summary import KEYS, SUMS, Groups, Process, Summary, check_summary

_METADATA: Final = b"fastprof"
_KERNELS: Final = ("start", "duration", "channel")  # lists with one item per communication kernel
_UNKNOWN: Final = ("flops", "bytes")  # columns with -1 for unknown


class StoreError(FastprofError):
    """The directory of results cannot be used."""


class Store:
    """A directory of summaries.

    Parameters
    ----------
    directory : created if it does not exist
    options : key of the options; summaries made with other options are ignored

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    StoreError
        The directory cannot be created.
    """

    def __init__(self, directory: str | os.PathLike[str], options: str) -> None:
        self._arrow, self._parquet = _import_pyarrow()
        self._directory, self._options = Path(directory), options
        self._damaged: dict[str, str] = {}
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{directory}: cannot be used as a directory of results: {error.strerror}"
            ) from error

    def path_of(self, path: str) -> Path:
        """The file of a trace's summary: its name and a hash of its path."""
        where = hashlib.blake2b(os.fsencode(os.path.abspath(path)), digest_size=4).hexdigest()
        name = os.path.basename(path).encode("utf-8", "replace").decode()
        return self._directory / f"{name}-{where}.parquet"

    def find(self, path: str) -> Summary | None:
        """The stored summary of an unchanged trace, made by this version of fastprof with the same
        options; None if there is no readable one."""
        stored = self.path_of(path)
        if not os.path.lexists(stored):
            return None
        try:
            source = source_of(path)
            if not stat.S_ISREG(os.lstat(stored).st_mode):  # a pipe would block
                raise ValueError("is not a regular file")
            summary = self._read(stored)
            check_summary(summary)
        except (*DAMAGED, self._arrow.ArrowException):
            self._damaged[path] = f"{stored}: is damaged; {path} is read again"
            return None
        made = summary.version, summary.options
        if made != (__version__, self._options) or not summary.source.is_same(source):
            return None
        return replace(summary, source=source)

    def problem(self, path: str) -> str:
        """What is wrong with the stored summary of a trace that `find` was asked for, or ""."""
        return self._damaged.get(path, "")

    def add(self, summary: Summary) -> None:
        """Store a summary, replacing an older one atomically; never a directory in its place.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        path = self.path_of(summary.source.path)
        if path.is_dir() and not path.is_symlink():
            return  # `problem` tells
        table = self._table(summary)
        try:
            with output_file(path, is_own=True) as file:
                self._parquet.write_table(table, file)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error

    def _table(self, summary: Summary) -> Any:
        arrow, groups = self._arrow, summary.groups
        pids = [-1 if process.pid is None else process.pid for process in summary.processes]
        pid = np.array([*pids, -1], np.int64)[groups.process]
        columns = {
            "file": _texts(arrow, Values(np.zeros(len(groups), np.int32), [summary.source.path])),
            "process": arrow.array(groups.process),
            "pid": arrow.array(pid, mask=pid < 0),
        }
        for name in KEYS:
            columns[name] = _texts(arrow, groups.keys[name])
        for name in SUMS:
            values = groups.sums[name]
            columns[name] = arrow.array(values, mask=(values < 0) & (name in _UNKNOWN))
        for name in _KERNELS:
            columns[name] = arrow.LargeListArray.from_arrays(groups.offsets, getattr(groups, name))
        properties = {
            key: value for key, value in vars(summary).items() if key not in ("groups", "source")
        }
        properties["source"] = asdict(summary.source)
        properties["processes"] = [asdict(process) for process in summary.processes]
        return arrow.table(columns).replace_schema_metadata({_METADATA: json.dumps(properties)})

    def _read(self, path: Path) -> Summary:
        """Read a summary. Invalid files raise various errors, see `find`."""
        table = self._parquet.read_table(path)
        properties = json.loads((table.schema.metadata or {})[_METADATA])
        lists = [table.column(name).combine_chunks() for name in _KERNELS]
        offsets = lists[0].offsets.to_numpy() if len(table) else np.zeros(1, np.int64)
        start, duration, channel = (each.flatten().to_numpy() for each in lists)
        groups = Groups(
            process=_numbers(table, "process").astype(np.int32),
            keys={name: _values(table, name) for name in KEYS},
            sums={name: _numbers(table, name).astype(np.int64) for name in SUMS},
            offsets=offsets.astype(np.int64) - offsets[0],
            start=start.astype(np.int64),
            duration=duration.astype(np.int64),
            channel=channel.astype(np.int32),
        )
        properties["source"] = TraceFile(**properties["source"])
        properties["processes"] = [
            Process(**_with_tuples(each)) for each in properties["processes"]
        ]
        return Summary(groups=groups, **properties)


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(x) if isinstance(x, list) else x for key, x in values.items()}


def _import_pyarrow() -> tuple[Any, Any]:
    why = "a directory of results is Parquet, which needs"
    return import_optional("pyarrow", why), import_optional("pyarrow.parquet", why)


def _texts(arrow: Any, column: Values) -> Any:
    """A dictionary column; invalid UTF-8 becomes a question mark."""
    texts = [str(value).encode("utf-8", "replace").decode() for value in column.values]
    ids = arrow.array(column.ids, mask=column.ids < 0)
    return arrow.DictionaryArray.from_arrays(ids, arrow.array(texts, arrow.string()))


def _values(table: Any, name: str) -> Values:
    """A text column with the values in the order of its dictionary."""
    column = table.column(name).combine_chunks().dictionary_encode()
    ids = column.indices.fill_null(-1).to_numpy().astype(np.int32)
    return Values(ids, column.dictionary.to_pylist())


def _numbers(table: Any, name: str) -> Any:
    return table.column(name).fill_null(-1).to_numpy()
