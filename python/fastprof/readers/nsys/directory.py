"""A directory of Parquet or Arrow files (nsys export --type parquetdir, arrowdir) to SQLite.

The directory has a file per table of the SQLite export, with the same columns: `StringIds.parquet`,
`CUPTI_ACTIVITY_KIND_KERNEL.arrow`. The tables are written into an SQLite file in the cache
directory of exports, once, and read from there as any export. Source: "Exporting" in
https://docs.nvidia.com/nsight-systems/UserGuide/index.html.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fastprof._system.optional import import_optional
from fastprof.errors import BadInputError
from fastprof.readers.nsys.report import EXPORT, cache_path, new_database, write_to_cache
from fastprof.readers.nsys.schema import SUFFIXES
from fastprof.readers.sqlite.database import Progress

_ROWS: Final = 1 << 16  # that are converted at a time


def export_directory(
    path: str | os.PathLike[str], progress: Progress | None = None
) -> tuple[Path, list[str]]:
    """The path of an SQLite file with the tables of a directory, and notices for the user.

    Raises
    ------
    BadInputError
        A file is damaged, or the cache directory is not writable.
    MissingDependencyError
        pyarrow is not installed.
    """
    name, tables = os.fsdecode(path), _tables(path)
    state = hashlib.sha256()
    for file in tables.values():
        status = file.stat()
        state.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())

    cached = cache_path(path, state.hexdigest()[:16])
    if cached.is_file():
        return cached, []
    write_to_cache(name, cached, lambda made: _write(name, tables, made, progress), EXPORT)
    return cached, [f"{name}: its tables are kept as an SQLite file, {cached}"]


def _tables(path: str | os.PathLike[str]) -> dict[str, Path]:
    """The file of each table, by name."""
    files = sorted(Path(os.fsdecode(path)).iterdir())
    return {
        file.stem: file
        for file in files
        if file.suffix in SUFFIXES and file.stem.isidentifier() and file.is_file()
    }


def _write(name: str, tables: dict[str, Path], made: Path, progress: Progress | None) -> None:
    import apsw

    reader = _Reader()
    with new_database(made) as database:
        for table, file in tables.items():
            try:
                _write_table(database, table, reader.batches(file), progress)
            except (reader.error, OSError, ValueError, OverflowError, apsw.Error) as error:
                raise BadInputError(
                    f"{name}: {file.name} cannot be read: {error}; export it again: {EXPORT}"
                ) from error


def _write_table(
    database: Any, table: str, batches: Iterator[Any], progress: Progress | None
) -> None:
    """Create a table and insert the rows of batches, of which the first may be empty."""
    first = next(batches)
    columns = [column.replace('"', '""') for column in first.schema.names]
    if not columns:
        return
    database.execute('CREATE TABLE "{}" ({})'.format(table, ", ".join(f'"{x}"' for x in columns)))
    places = ", ".join("?" * len(columns))
    statement, rows = f'INSERT INTO "{table}" VALUES ({places})', 0
    while first is not None:
        values = [column.to_pylist() for column in first.columns]
        database.executemany(statement, zip(*values, strict=True))
        rows += first.num_rows
        if progress is not None:
            progress(table, rows, 0)
        first = next(batches, None)


class _Reader:
    """Files of Arrow's formats as batches of rows, without dictionaries.

    Attributes
    ----------
    error : what its methods raise for damaged files, beside OSError and ValueError
    """

    def __init__(self) -> None:
        purpose = "Parquet and Arrow exports need"
        self._arrow = import_optional("pyarrow", purpose)
        self._ipc = import_optional("pyarrow.ipc", purpose)
        self._parquet = import_optional("pyarrow.parquet", purpose)
        self.error: type[Exception] = self._arrow.ArrowException

    def batches(self, path: Path) -> Iterator[Any]:
        """At least one batch; of a table without rows, an empty one."""
        is_parquet = path.suffix == ".parquet"
        schema, batches = (self._of_parquet if is_parquet else self._of_arrow)(path)
        yield self._plain(self._arrow.RecordBatch.from_pylist([], schema=schema))
        yield from map(self._plain, batches)

    def _of_parquet(self, path: Path) -> tuple[Any, Iterator[Any]]:
        file = self._parquet.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(batch_size=_ROWS)

    def _of_arrow(self, path: Path) -> tuple[Any, Iterator[Any]]:
        """A file with random access, or a stream."""
        source = self._arrow.memory_map(os.fspath(path))
        try:
            file = self._ipc.open_file(source)
        except self._arrow.ArrowInvalid:
            source.seek(0)
            stream = self._ipc.open_stream(source)
            return stream.schema, iter(stream)
        return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))

    def _plain(self, batch: Any) -> Any:
        """The batch with the values of dictionaries, and with the integers of SQLite."""
        columns = [self._plain_column(column) for column in batch.columns]
        return self._arrow.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _plain_column(self, column: Any) -> Any:
        if isinstance(column, self._arrow.DictionaryArray):
            column = column.dictionary_decode()
        is_unsigned = column.type == self._arrow.uint64()  # SQLite has the same bits as int64
        return column.view(self._arrow.int64()) if is_unsigned else column
