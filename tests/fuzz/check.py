"""Run the commands on a mutant and check their results.

Correct results are rows, or one line on stderr and exit code 1. They must not depend on the way of
reading: by pages or by SQLite, in large or in small blocks. The number of rows must be that of the
file if it can be counted without fastprof, and `prof` must read the output of `parse`.
"""

import csv
import io
import json
import os
import sqlite3
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastprof import cli
from fastprof.model.column_table import COLUMNS, TRACE_COLUMNS
from fastprof.readers import dict_lines, json_text
from fuzz.answers import ANSWERS, check_output, command
from fuzz.corpus import DICT, GZIP, KINETO, NSYS, ROCPD, ROCPROF, SQLITE
from support.kineto_oracle import table_of

ALL_COLUMNS = ",".join(column.key for column in COLUMNS)
OF_TRACES = ",".join(column.key for column in COLUMNS + TRACE_COLUMNS)
# SQL that counts the rows of the report, by format.
TABLES_OF_ROWS = {
    NSYS: ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
           "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"),
    ROCPD: ("rocpd_kernel_dispatch", "rocpd_memory_copy"),  # and the id of their run
}  # fmt: skip

# Columns that come from a second reading of the file.
READ_AGAIN = ("launch_end", "collective", "process_group", "group_size", "message_bytes",
              "message_type")  # fmt: skip

csv.field_size_limit(1 << 30)


class WrongError(Exception):
    """A command gave a wrong result; the message describes it."""


@dataclass(frozen=True)
class Ended:
    """The result of a command: exit code and output."""

    code: int
    stderr: str
    output: bytes | None
    stdout: bytes = b""

    @property
    def rows(self) -> list[list[str]]:
        """The rows of a CSV report."""
        text = (self.output or b"").decode("utf-8", "surrogateescape")
        return list(csv.reader(io.StringIO(text)))[1:]


def check(path: Path, format_: str, number: int) -> Ended:
    """Run commands on a file and compare them; return the result of the report.

    number : selects the further check to run; consecutive numbers select different ones

    Raises
    ------
    WrongError
    """
    before = path.read_bytes()
    columns = ALL_COLUMNS if format_ == "dict" else OF_TRACES
    report = ["prof", "--csv", "--all", "-c", columns, str(path)]
    ends = {name: _run(report, path, within) for name, within in WAYS[format_].items()}
    (first, ended), *others = ends.items()
    for name, other in others:
        if other != ended and _may_differ(path, format_, (ended, other)):
            return ended
        if other != ended:
            raise WrongError(f"{first} and {name} differ:\n{_difference(ended, other)}")
    extra = (_parse, _info, _forced, None)[number % 4]
    if extra is None:
        _answer(path, number // 4)
    else:
        extra(path, format_, ended)
    told = "malformed events were skipped" in ended.stderr
    if ended.code == 0 and not told and (n := _rows_in(path, format_, before)) is not None:
        result = len(ended.rows)
        if result != n:
            raise WrongError(f"{result} rows, the file has {n}; {ended.stderr}")
    if path.read_bytes() != before:
        raise WrongError("the input is another one now")
    return ended


def check_shape(path: Path) -> Ended:
    """Run one report on a large file; return its result.

    Raises
    ------
    WrongError
    """
    return _run(["prof", "--csv", str(path)], path)


def _run(words: list[str], path: Path, within: Callable[[], Any] | None = None) -> Ended:
    """Run a command in this process and check the properties common to all results."""
    out = path.with_name("out")
    told = io.StringIO()
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    streams = sys.stdout, sys.stderr
    with warnings.catch_warnings(record=True) as warned, _unraised() as unraised:
        warnings.simplefilter("always")
        sys.stdout, sys.stderr = stdout, told
        try:
            where = [] if words[0] == "info" else ["-o", str(out)]
            if within is None:
                code = cli.main([*words, *where])
            else:
                with within():
                    code = cli.main([*words, *where])
        except SystemExit as ended:  # an option that the file rules out
            code = int(ended.code or 0)
        except BaseException as error:
            trace = "".join(traceback.format_exception(error))
            raise WrongError(f"{words[0]}: {trace}") from None
        finally:
            sys.stdout, sys.stderr = streams
    output = out.read_bytes() if out.exists() else None
    out.unlink(missing_ok=True)
    ended = Ended(code, told.getvalue(), output, stdout.buffer.getvalue())
    problems = [str(warning) for warning in warned] + unraised
    problems += [*_problems(ended, words[0]), *_left_behind(path)]
    if problems:
        raise WrongError(f"{words[0]}: {'; '.join(problems)}\n{ended.stderr[:2000]}")
    return ended


@contextmanager
def _unraised() -> Iterator[list[str]]:
    """Collects unhandled exceptions of threads and finalizers."""
    result: list[str] = []
    hooks = sys.unraisablehook, threading.excepthook

    def note(what: Any) -> None:
        result.append("".join(traceback.format_exception(what.exc_value)))

    sys.unraisablehook = threading.excepthook = note
    try:
        yield result
    finally:
        sys.unraisablehook, threading.excepthook = hooks


def _problems(ended: Ended, command: str) -> Iterator[str]:
    lines = ended.stderr.splitlines()
    if ended.code not in (0, 1) and not (ended.code == 2 and command in ANSWERS):
        yield f"exit code {ended.code}"
    if command != "info" and (ended.output is not None) != (ended.code == 0):
        yield "an output file of a command that failed, or none of one that did not"
    if ended.code == 1 and (len(lines) != 1 or not lines[0].startswith("fastprof: ")):
        yield f"{len(lines)} lines for an error"
    if ended.code == 1 and "x.trace" not in ended.stderr:
        yield "an error that does not name the file"
    if "not enough memory" in ended.stderr:
        yield "memory ran out"
    if ended.code == 0 and any(
        not line.startswith(("fastprof: warning: ", "fastprof: wrote ", "Found ")) for line in lines
    ):
        yield "a line that is neither a warning nor a count"


def _left_behind(path: Path) -> Iterator[str]:
    for other in path.parent.iterdir():
        if other != path:
            yield f"left behind: {other.name}"
            other.unlink()


def _difference(one: Ended, other: Ended) -> str:
    for what in ("code", "stderr", "stdout", "output"):
        a, b = getattr(one, what), getattr(other, what)
        if a != b and isinstance(a, bytes) and isinstance(b, bytes):
            pairs = zip(a.splitlines(), b.splitlines(), strict=False)
            differing = [pair for pair in pairs if pair[0] != pair[1]]
            return f"{what}: {len(a)} and {len(b)} bytes, {differing[:1]}"
        if a != b:
            return f"{what}: {a!r} and {b!r}"
    return "nothing"


# Ways of reading that must give equal results.


@contextmanager
def _scan(way: str) -> Iterator[None]:
    os.environ["FASTPROF_SCAN"] = way
    try:
        yield
    finally:
        del os.environ["FASTPROF_SCAN"]


@contextmanager
def _blocks(module: Any, **sizes: int) -> Iterator[None]:
    before = {name: getattr(module, name) for name in sizes}
    for name, size in sizes.items():
        setattr(module, name, size)
    try:
        yield
    finally:
        for name, size in before.items():
            setattr(module, name, size)


_BY_SCAN = {"sqlite": lambda: _scan("sqlite"), "pages": lambda: _scan("")}
_BY_BLOCKS = {
    "large blocks": None,
    "small blocks": lambda: _blocks(json_text, BLOCK_SIZE=977, COMPRESSED_SIZE=61),
}
WAYS: dict[str, dict[str, Callable[[], Any] | None]] = {
    **dict.fromkeys(SQLITE, _BY_SCAN),
    **dict.fromkeys((KINETO, ROCPROF, GZIP), _BY_BLOCKS),
    DICT: {"large blocks": None, "small blocks": lambda: _blocks(dict_lines, BLOCK_SIZE=773)},
}


# Further checks of a mutant.


def _parse(path: Path, format_: str, ended: Ended) -> None:
    """The output of `parse` has the report's rows without copies, and `prof` reads it."""
    lines = _run(["parse", str(path)], path)
    if lines.code > ended.code:  # parse does not read copies, nor errors in them
        raise WrongError(f"parse ends with {lines.code}, prof with {ended.code}: {lines.stderr}")
    if not lines.output:
        return
    n = lines.output.count(b"\n")
    path.with_name("lines").mkdir()
    again = path.with_name("lines") / path.name
    again.write_bytes(lines.output)
    try:
        read = _run(["prof", "--csv", str(again)], again)
    finally:
        again.unlink()
        again.parent.rmdir()
    if read.code or len(read.rows) != n:
        raise WrongError(f"{n} lines of parse, {len(read.rows)} rows of them: {read.stderr}")


def _info(path: Path, format_: str, ended: Ended) -> None:
    told = _run(["info", "--json", str(path)], path)
    code = ended.code
    if told.code < code:  # `info` does not read the API calls again, as some columns do
        columns = ",".join(part for part in OF_TRACES.split(",") if part not in READ_AGAIN)
        code = _run(["prof", "--csv", "--all", "-c", columns, str(path)], path).code
    if told.code != code:
        raise WrongError(f"info ends with {told.code}, prof with {code}: {told.stderr}")
    if told.code == 0:
        json.loads(told.stdout)


def _answer(path: Path, number: int) -> None:
    """A report, page, export or comparison ends, and its output is complete."""
    words = command(number, str(path))
    ended = _run(words, path)
    wrong = check_output(words, ended.output or b"") if ended.code == 0 else None
    if wrong:
        raise WrongError(f"{' '.join(words)}: {wrong}")


def _forced(path: Path, format_: str, ended: Ended) -> None:
    """With FASTPROF_SCAN=pages, results are equal, or the file is rejected with the reason."""
    if format_ not in SQLITE:
        return _width(path, ended)
    report = ["prof", "--csv", "--all", "-c", OF_TRACES, str(path)]
    forced = _run(report, path, lambda: _scan("pages"))
    if forced != ended and "FASTPROF_SCAN=pages, but " not in forced.stderr:
        raise WrongError(f"forced to pages:\n{_difference(ended, forced)}")
    return None


def _width(path: Path, ended: Ended) -> None:
    """Aligned columns and JSON objects have as many rows."""
    for style in (["-w", "900"], ["--json"]):
        wide = _run(["prof", *style, "--all", "-c", ALL_COLUMNS, str(path)], path)
        n = (wide.output or b"").count(b"\n") - (style[0] == "-w")
        if wide.code != ended.code or (wide.code == 0 and n != len(ended.rows)):
            raise WrongError(f"{style[0]}: {n} rows, {len(ended.rows)} in CSV")


def _may_differ(path: Path, format_: str, ends: tuple[Ended, Ended]) -> bool:
    """Whether results may differ: SQLite finds other rows by id than in order, or the next event
    after malformed text is a guess that depends on the block size."""
    if format_ not in SQLITE:
        return any("malformed events were skipped" in ended.stderr for ended in ends)
    with closing(_connect(path)) as connection:
        try:
            told = connection.execute("PRAGMA integrity_check").fetchall()
        except sqlite3.Error:
            return False
    return any("out of order" in line for (line,) in told)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


# The expected number of rows.


def _rows_in(path: Path, format_: str, content: bytes) -> int | None:
    if format_ in TABLES_OF_ROWS:
        return _rows_by_sql(path, TABLES_OF_ROWS[format_])
    if format_ == KINETO:
        return _rows_by_json(content)
    return None


def _rows_by_sql(path: Path, begins: tuple[str, ...]) -> int | None:
    """None if SQLite finds an error in the file."""
    with closing(_connect(path)) as connection:
        try:
            if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
                return None
            names = {name for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table'")}  # fmt: skip
            tables = [
                name for name in names
                if name in begins or name.startswith(tuple(f"{begin}_" for begin in begins))
            ]  # fmt: skip
            return sum(
                connection.execute(f'SELECT count(*) FROM "{t}"').fetchone()[0] for t in tables
            )
        except (sqlite3.Error, UnicodeDecodeError):
            return None


def _rows_by_json(content: bytes) -> int | None:
    """None if the file is not JSON with a list of events."""
    try:
        root = json.loads(content, strict=False)
    except (ValueError, RecursionError):
        return None
    events = root.get("traceEvents") if isinstance(root, dict) else root
    if not isinstance(events, list) or content.count(b'"traceEvents"') > 1:
        return None
    return sum(isinstance(event, dict) and table_of(event) == "gpu" for event in events)
