"""The format of a file, by its content, the trace in it, and the memory that it needs at least."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastprof._system import memory
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.model.timeline import GpuSamples, Recorded, RecordedEvents
from fastprof.model.trace import Recording
from fastprof.readers.beside import unrecorded_beside
from fastprof.readers.dict_lines import looks_like_dict_lines
from fastprof.readers.nsys import schema as nsys_schema
from fastprof.readers.nvprof import schema as nvprof_schema
from fastprof.readers.rocpd import rpd_schema
from fastprof.readers.rocpd import schema as rocpd_schema
from fastprof.readers.sqlite.database import EXPORT_AGAIN, Database, Progress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SQLITE_MAGIC = b"SQLite format 3\0"
# The rest of the line is the version of nsys: 2026@4@1@191-264138605071v0.
_REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"
_REPORT_SUFFIXES = (".nsys-rep", ".qdrep")
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ROCPROF_KEY = b'"rocprofiler-sdk-tool"'
# The first object of a JSON export of nsys: strings, a string, or an event.
_NSYS_JSON = regex(
    rb'\{\s*"(?:data"\s*:\s*\[\s*"|type"\s*:\s*"String"|Type"\s*:\s*\d+\s*,\s*"\w+")'
)
_HEAD_SIZE = 4096


class FileFormat(Enum):
    """The format of a file. SQLite files are of nsys, NVProf or rocprofv3."""

    DICT_LINES = "dict lines"
    NSYS_REPORT = "Nsight Systems report"
    NSYS_DIRECTORY = "Nsight Systems export as Parquet or Arrow files"
    NSYS_JSON = "Nsight Systems export as JSON"
    SQLITE = "SQLite database"
    JSON = "trace of torch.profiler"
    GZIP_JSON = "compressed trace of torch.profiler"
    ROCPROF_JSON = "JSON of rocprofv3"
    SNAPSHOT = "memory snapshot of torch"


@dataclass(frozen=True)
class InputFile:
    """A file with a known format; `head` holds its first bytes."""

    path: str | os.PathLike[str]
    format: FileFormat
    head: bytes

    @property
    def name(self) -> str:
        """The path in messages."""
        return os.fsdecode(self.path)

    @property
    def is_compressed(self) -> bool:
        """Whether it is gzipped."""
        return self.head.startswith(_GZIP_MAGIC)

    def exported(self, progress: Progress | None = None) -> tuple[InputFile, list[str]]:
        """The SQLite export of a report, directory or JSON of Nsight Systems, and notices.

        Of other formats, the file itself.

        Raises
        ------
        BadInputError
            The report cannot be exported, or a file of the directory or the JSON is damaged.
        """
        if self.format is FileFormat.NSYS_DIRECTORY:
            from fastprof.readers.nsys.directory import export_directory

            path, notices = export_directory(self.path, progress)
        elif self.format is FileFormat.NSYS_JSON:
            from fastprof.readers.nsys.json_lines import export_json

            path, notices = export_json(self.path, progress)
        elif self.format is FileFormat.NSYS_REPORT:
            from fastprof.readers.nsys.report import export

            path, notices = export(self.path, self.head, progress)
        else:
            return self, []
        head = read_head(path)
        if not head.startswith(_SQLITE_MAGIC):
            raise BadInputError(f"{os.fsdecode(path)}: {_unknown(head)}")
        return InputFile(path, FileFormat.SQLITE, head), notices


def detect(path: str | os.PathLike[str]) -> InputFile:
    """Detect the format of a file by its content; of reports without a known header, by suffix.

    Raises
    ------
    BadInputError
        The file cannot be read, is empty, or has an unknown format.
    """
    if nsys_schema.is_export_directory(path):
        return InputFile(path, FileFormat.NSYS_DIRECTORY, b"")
    head = read_head(path)
    file_format = _format_of(head, os.fsdecode(path))
    if file_format is None:
        raise BadInputError(f"{os.fsdecode(path)}: {_unknown(head)}")
    return InputFile(path, file_format, head)


def detect_trace(path: str | os.PathLike[str]) -> InputFile:
    """`detect` for files that contain kernels: traces and dict lines.

    Raises
    ------
    BadInputError
        As for `detect`, or the file is a memory snapshot of torch.
    """
    file = detect(path)
    if file.format is FileFormat.SNAPSHOT:
        raise BadInputError(
            f"{file.name}: expected a trace, found a pickle; for memory snapshots of torch, use "
            "fastprof memory FILE or fastprof.memory_snapshot(FILE)"
        )
    return file


def _format_of(head: bytes, name: str) -> FileFormat | None:
    if looks_like_dict_lines(head):
        return FileFormat.DICT_LINES
    if head.startswith(_REPORT_MAGIC):
        return FileFormat.NSYS_REPORT
    if head.startswith(_SQLITE_MAGIC):
        return FileFormat.SQLITE
    if head.lstrip().startswith((b"{", b"[")):
        return _json_format(head, FileFormat.JSON)
    from fastprof.readers.torch_snapshot import MAGIC

    if head.startswith(MAGIC):
        return FileFormat.SNAPSHOT
    if name.lower().endswith(_REPORT_SUFFIXES):
        return FileFormat.NSYS_REPORT
    return _json_format(head, FileFormat.GZIP_JSON) if head.startswith(_GZIP_MAGIC) else None


def _json_format(head: bytes, other: FileFormat) -> FileFormat:
    """The format of JSON text, by its first key: that of rocprofv3, nsys, or else `other`."""
    if head.startswith(_GZIP_MAGIC):
        import zlib

        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD_SIZE)
        except zlib.error:
            return other
    begin = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if begin[:1] == b"{" and begin[1:].lstrip().startswith(_ROCPROF_KEY):
        return FileFormat.ROCPROF_JSON
    return FileFormat.NSYS_JSON if _NSYS_JSON.match(begin) else other


def read_head(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file.

    Raises
    ------
    BadInputError
        The file does not exist, cannot be read, or is empty.
    """
    name = os.fsdecode(path)
    if Path(path).is_dir():
        raise BadInputError(
            f"{name}: is a directory; name a trace in it, or run fastprof ranks {name}"
        )
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_SIZE)
    except FileNotFoundError as error:
        raise BadInputError(f"{name}: no such file; check the path") from error
    except OSError as error:
        raise BadInputError(f"{name}: cannot be read: {error.strerror}") from error
    if not head:
        is_json = name.lower().endswith((".json", ".json.gz", ".jsonl"))
        remedy = "get the file again, or record again" if is_json else EXPORT_AGAIN
        raise BadInputError(f"{name}: is empty; {remedy}")
    return head


def read_trace(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    copies: bool = False,
    captures: bool = False,
    host: bool = False,
) -> Recording:
    """Read the trace in a file. nsys exports a report first.

    copies : also read memory copies and memsets
    captures : the file is a capture of graphs; also read the API calls that add work to them
    host : also keep all API calls; exports of nsys only

    Raises
    ------
    BadInputError
        The file cannot be read, is damaged, or is not a trace.
    """
    file, notices = detect_trace(path).exported(progress)
    if file.format is FileFormat.SQLITE:
        recording = _read_sqlite(file, progress, copies, captures, host)
        recording.about.unrecorded = unrecorded_beside(path) or recording.about.unrecorded
    else:
        memory.require(file.name, memory_of_json(file.path, file.is_compressed))
        recording = _read_json(file, progress, copies, captures)
    recording.name = os.fsdecode(path)
    recording.warnings[:0] = notices
    return recording


def _read_json(
    file: InputFile, progress: Progress | None, copies: bool, captures: bool
) -> Recording:
    if file.format is FileFormat.ROCPROF_JSON:
        from fastprof.readers.rocpd import json_reader as rocprof

        return rocprof.read(file.path, copies, progress)
    from fastprof.readers.kineto import reader as kineto

    return kineto.read(file.path, copies, progress, captures)


def _read_sqlite(
    file: InputFile, progress: Progress | None, copies: bool, captures: bool, host: bool
) -> Recording:
    with Database(file.path, progress) as database:
        tool = _tool_of(database)
        memory.require(database.name, memory_of_database(database, copies))
        database.announce(_large_tables(database))
        if tool == _NSYS:
            from fastprof.readers.nsys import reader as nsys

            recording = nsys.read(database, copies, captures, host)
        elif tool == _NVPROF:
            from fastprof.readers.nvprof import reader as nvprof

            recording = nvprof.read(database, copies)
        elif tool == _RPD:
            from fastprof.readers.rocpd import rpd

            recording = rpd.read(database, copies)
        else:
            from fastprof.readers.rocpd import reader as rocpd

            recording = rocpd.read(database, copies, host)
        recording.about.read_by = database.read_by
        return recording


_NSYS, _NVPROF, _ROCPD, _RPD = "nsys", "nvprof", "rocpd", "rpd"


def _tool_of(database: Database) -> str:
    """The format of a database, by its tables.

    Raises
    ------
    BadInputError
        The tables are of no known format.
    """
    schemas = {_NSYS: nsys_schema, _NVPROF: nvprof_schema, _ROCPD: rocpd_schema}
    schemas[_RPD] = rpd_schema
    for tool, schema in schemas.items():
        if schema.recognises(database.tables):
            return tool
    raise _unknown_tables(database)


def read_timeline(path: str | os.PathLike[str]) -> Recorded:
    """Read the ranges and all API calls of an SQLite database, with their times.

    Raises
    ------
    BadInputError
        The file cannot be read or is damaged.
    """
    file = _file_of(path)
    with Database(file.path) as database:
        memory.require(database.name, memory_of_database(database, False))
        tool = _tool_of(database)
        if tool == _NSYS:
            from fastprof.readers.nsys import timeline as of_nsys

            return of_nsys.read(database)
        if tool == _ROCPD:
            from fastprof.readers.rocpd import reader as of_rocpd

            return of_rocpd.read_timeline(database)
        from fastprof.readers.nvprof import timeline as of_nvprof

        return of_nvprof.read(database)


def read_host_events(path: str | os.PathLike[str], name: str) -> RecordedEvents | None:
    """Read events that Nsight Systems records, and rocprofv3 as far as payloads; else None.

    name : os_calls, cpu_samples, cpu_switches, page_faults or payloads

    Raises
    ------
    BadInputError
        The file cannot be read, is damaged, or is not a trace.
    """
    with _database_in(_file_of(path)) as (database, tool):
        if tool == _NSYS:
            from fastprof.readers.nsys.host_events import READERS

            return READERS[name](database)
        if tool == _ROCPD and name == "payloads":
            from fastprof.readers.rocpd.host_events import payload_events

            return payload_events(database)
        return None


def _file_of(path: str | os.PathLike[str]) -> InputFile:
    """A trace, or its SQLite export."""
    file, _ = detect_trace(path).exported()
    return file


@contextmanager
def _database_in(file: InputFile) -> Iterator[tuple[Any, str]]:
    """The database in a file, open, and its format; None and "" for other files."""
    if file.format is not FileFormat.SQLITE:
        yield None, ""
        return
    with Database(file.path) as database:
        yield database, _tool_of(database)


def read_counters(path: str | os.PathLike[str], copies: bool) -> dict[str, npt.NDArray[np.float64]]:
    """Read hardware counters of kernels, which only rocprofv3 records, by name.

    copies : whether copies were read, which then are rows like kernels

    Raises
    ------
    BadInputError
        The file cannot be read, is damaged, or is not a trace.
    """
    file = _file_of(path)
    if file.format is FileFormat.ROCPROF_JSON:
        from fastprof.readers.rocpd import json_counters

        return json_counters.read(file.path, copies)
    with _database_in(file) as (database, tool):
        if tool != _ROCPD:
            return {}
        from fastprof.readers.rocpd import counters

        return counters.read(database, copies)


def read_gpu_samples(path: str | os.PathLike[str]) -> GpuSamples | None:
    """Read the samples of GPU counters that only Nsight Systems records; None if there are none.

    Raises
    ------
    BadInputError
        The file cannot be read, is damaged, or is not a trace.
    """
    with _database_in(_file_of(path)) as (database, tool):
        if tool != _NSYS:
            return None
        from fastprof.readers.nsys.gpu_metrics import gpu_samples

        return gpu_samples(database)


def _unknown_tables(database: Database) -> BadInputError:
    database.refuse_posing(nsys_schema.STRINGS, nvprof_schema.STRINGS)
    tables = ", ".join(sorted(database.tables)[:6]) or "no tables"
    return BadInputError(
        f"{database.name}: neither an Nsight Systems export (no table StringIds) nor an NVProf "
        f"file (no table StringTable) nor a rocpd database (no table rocpd_region_... or "
        f"rocpd_op); found {tables}. "
        "Record with: nsys profile -t cuda,nvtx, then nsys export --type sqlite"
    )


def _unknown(head: bytes) -> str:
    expected = "expected an Nsight Systems SQLite export"
    if not any(head[:100]):
        return f"{expected}, found zeros instead of a header: damaged; {EXPORT_AGAIN}"
    return f"{expected}, found an unknown format (first bytes {head[:16]!r}); {EXPORT_AGAIN}"


# Tables and their share of a work item or range per row. NVProf has two rows per range.
_WORK = {nsys_schema.KERNELS, nsys_schema.GRAPHS, *nvprof_schema.KERNELS, rpd_schema.OPS}
_COPIES = {*nvprof_schema.COPIES, nvprof_schema.SETS}
_RANGES = {
    **dict.fromkeys(nsys_schema.RANGES, 1.0), nvprof_schema.MARKERS: 0.5, rpd_schema.CALLS: 1.0,
}  # fmt: skip
_CALLS = {nsys_schema.LAUNCHES, *nvprof_schema.LAUNCHES}
_MIN_ROW = 30  # bytes per row in a file


def memory_of_database(database: Database, copies: bool) -> float:
    """Bytes for the kernels and ranges of an open database."""
    work = _rows(database, _work(database) | _copies(database) if copies else _work(database))
    return work * memory.OF_KERNEL + _ranges(database) * memory.OF_RANGE


def contents_of(database: Database) -> tuple[float, float, float]:
    """How many items of GPU work, ranges and API calls an open database has at most."""
    work = _work(database) | _copies(database)
    calls = _CALLS | rocpd_schema.tables_of(database.tables, rocpd_schema.REGIONS)
    return _rows(database, work), _ranges(database), _rows(database, calls)


def _work(database: Database) -> set[str]:
    return _WORK | rocpd_schema.tables_of(database.tables, rocpd_schema.DISPATCHES)


def _copies(database: Database) -> set[str]:
    return _COPIES | rocpd_schema.tables_of(database.tables, rocpd_schema.COPIES)


def _large_tables(database: Database) -> set[str]:
    """The tables that are read row by row."""
    tables = database.tables.keys()
    others = (rocpd_schema.REGIONS, rocpd_schema.EVENTS)
    of_rocpd = [rocpd_schema.tables_of(tables, base) for base in others]
    known = _work(database) | _copies(database) | _CALLS | _RANGES.keys()
    return known.union(*of_rocpd) & tables


def _rows(database: Database, tables: Set[str]) -> float:
    """How many rows some tables have together; a damaged file may claim too many."""
    most = database.path.stat().st_size / _MIN_ROW
    return sum(min(most, database.count(table)) for table in tables & database.tables.keys())


def _ranges(database: Database) -> float:
    of_rocpd = rocpd_schema.tables_of(database.tables, rocpd_schema.REGIONS)
    known = sum(share * _rows(database, {table}) for table, share in _RANGES.items())
    return known + _rows(database, of_rocpd)


def memory_of_dict_lines(path: str | os.PathLike[str]) -> float:
    """Bytes for a file of dict lines."""
    return os.path.getsize(path) * memory.OF_DICT_BYTE


def memory_of_json(path: str | os.PathLike[str], compressed: bool) -> float:
    """Bytes for a trace of torch.profiler."""
    size = os.path.getsize(path)
    if compressed:
        with Path(path).open("rb") as file:
            file.seek(max(0, size - 4))
            inflated = int.from_bytes(file.read(4), "little")  # of the last member, modulo 2^32
        size = max(size, inflated)
    return size * memory.OF_JSON_BYTE
