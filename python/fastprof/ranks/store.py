"""A directory of summaries as Parquet files, one per trace, so unchanged traces are read once.

A row is a group of kernels. Properties of the trace are in the schema's metadata.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from fastprof._system.optional import import_optional
from fastprof.errors import DAMAGED
from fastprof.model.columns import Values
from fastprof.ranks.files import TraceFile
from fastprof.ranks.kept import Directory
from fastprof.ranks.summary import KEYS, SUMS, Groups, Process, Summary, check_summary

_METADATA: Final = b"fastprof"
_KERNELS: Final = ("start", "duration", "channel")  # lists with one item per communication kernel
_UNKNOWN: Final = ("flops", "bytes")  # columns with -1 for unknown


class Store(Directory[Summary]):
    """A directory of summaries, see `Directory`.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """

    SUFFIX = ".parquet"

    def __init__(self, directory: str | os.PathLike[str], options: str) -> None:
        self._arrow, self._parquet = _import_pyarrow()
        super().__init__(directory, options)

    @property
    def damage(self) -> tuple[type[Exception], ...]:
        """As in Directory."""
        return (*DAMAGED, self._arrow.ArrowException)

    def read(self, stored: Path) -> Summary:
        """As in Directory."""
        summary = self._read(stored)
        check_summary(summary)
        return summary

    def write(self, result: Summary, file: BinaryIO) -> None:
        """As in Directory."""
        self._parquet.write_table(self._table(result), file)

    def with_source(self, result: Summary, source: TraceFile) -> Summary:
        """As in Directory."""
        return replace(result, source=source)

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
            Process(**_with_tuples(process)) for process in properties["processes"]
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
