"""Output of a command: standard output or a file, complete or not at all; messages on stderr."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from fastprof._system.output_file import output_file, protected, refuse_input
from fastprof.errors import OutputError
from fastprof.model.heading import printable
from fastprof.model.terminal import OPEN_STYLE, OWN_STYLES

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from fastprof.api.profile import Profile


# The arguments of all commands that name files, by their attribute: what is written with its
# option, what is read, and the files that count in directories of other files.
OUTPUTS: Final = {"output": "-o", "html": "--html", "plot": "--plot", "report": "--report"}
INPUTS: Final = ("file", "paths", "captures", "runs", "graph_capture", "graph_annotations", "ops")
FOLDERS: Final = {
    "store": "*.[ps]*",  # *.parquet; history.sqlite
    "baseline": "*.[pjs]*",  # history.sqlite; of earlier versions: baseline.parquet, ...
    "source": "**/*.py",
    "compiled": "**/*.[pjl]*",  # artefacts of torch.compile: *.py, *.json, *.log
}


@contextmanager
def keeping_inputs(arguments: argparse.Namespace) -> Iterator[None]:
    """Until the block ends, no output of a command replaces one of its inputs or other outputs.

    Raises
    ------
    OutputError
        An output is an input, or two are one file.
    """
    with protected(lambda: _inputs(arguments)):
        option_of: dict[str, str] = {}
        for name, option in OUTPUTS.items():
            path = getattr(arguments, name, None)
            if isinstance(path, str) and path != "-":
                refuse_input(path, f"choose another name for {option}")
                is_file = os.path.isfile(path) or not os.path.exists(path)
                other = option_of.setdefault(os.path.realpath(path), option)
                if is_file and other != option:
                    raise OutputError(f"{path}: {other} and {option} name one file; choose two")
        yield


def _inputs(arguments: argparse.Namespace) -> Iterator[str | int]:
    """The files that a command reads, those of directories too, and standard input."""
    from fastprof.readers.beside import FACTS
    from fastprof.runs.directory import is_run

    for name in INPUTS:
        for path in _paths(getattr(arguments, name, None)):
            yield path
            folder = os.path.dirname(os.path.realpath(path))
            if os.path.isdir(path):
                from fastprof.ranks.files import all_below

                yield from all_below(path, getattr(arguments, "pattern", None))
            elif is_run(folder):
                yield os.path.join(folder, FACTS)
    for name, pattern in FOLDERS.items():
        for path in _paths(getattr(arguments, name, None)):
            yield from map(str, Path(path).glob(pattern)) if os.path.isdir(path) else (path,)
    yield 0


def _paths(value: Any) -> Iterator[str]:
    """The paths of an argument: one, or several in a list, or in pairs."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _paths(each)


@contextmanager
def output(path: str | None) -> Iterator[BinaryIO]:
    """Open a binary file for output. A terminal gets text without control characters.

    Parameters
    ----------
    path : the output file; None for standard output

    Raises
    ------
    OutputError
        The file cannot be created or written, or is an input.
    """
    if path is None:
        if sys.stdout is None:
            raise OutputError("standard output is closed; write to a file with -o")
        with suppress(OSError, ValueError):  # not a file: a stream of the caller
            refuse_input(sys.stdout.fileno(), "send it to another file")
        try:
            yield _safe(sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            discard_stdout()
            raise OutputError(f"standard output: cannot be written: {error.strerror}") from error
        return
    try:
        with output_file(path, _LowCacheFile) as file:
            yield _safe(file)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _safe(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, _Terminal(file)) if file.isatty() else file


class _Terminal(io.RawIOBase):
    """A terminal. Names in a file of others must not move its cursor or reorder its text."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""  # the beginning of a style

    def writable(self) -> bool:
        """Whether it can be written to: always."""
        return True

    def write(self, data: Any, /) -> int:
        """Write UTF-8 text; all but printable characters, tabs, ends of lines and the styles of
        `Colours` become spaces."""
        text = self._rest + self._decoder.decode(bytes(data))
        is_open = OPEN_STYLE.search(text)
        text, self._rest = (text[: is_open.start()], is_open[0]) if is_open else (text, "")
        self._file.write(_without_control(text).encode())
        return len(data)

    def flush(self) -> None:
        """Write out what is buffered."""
        self._file.flush()


def _without_control(text: str) -> str:
    parts = OWN_STYLES.split(text)  # every second one is a style
    for i in range(0, len(parts), 2):
        lines = (line.split("\t") for line in parts[i].split("\n"))
        parts[i] = "\n".join("\t".join(map(printable, cells)) for cells in lines)
    return "".join(parts)


class _LowCacheFile(io.FileIO):
    """A file that occupies little page cache: only its first 64 MiB and the most recent writes.

    Reports can be gigabytes. Caching all of it takes memory from other programs, and a virtual
    machine first has to request that memory from its host: writing took six times as long. Older
    pages are dropped once they are on disk, by another thread: it takes half as long as writing
    them. No call waits for the disk.
    """

    def __init__(self, path: str, mode: str) -> None:
        self._written = 0
        self._pool: ThreadPoolExecutor | None = None
        super().__init__(path, mode)

    def write(self, data: Any, /) -> int:
        count = super().write(data)
        before, self._written = self._written, self._written + count
        for end in range(before // _STEP + 1, self._written // _STEP + 1):
            if end * _STEP > _KEPT and hasattr(os, "posix_fadvise"):
                self._drop_later(end * _STEP)
        return count

    def close(self) -> None:
        """Close the file when the other thread is done."""
        if self._pool is not None:
            self._pool.shutdown()
        super().close()

    def _drop_later(self, end: int) -> None:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1)
        self._pool.submit(self._drop, end)

    def _drop(self, end: int) -> None:
        """Start writing the step that ends at `end` to disk, and drop the step `_LAG` before it."""
        with suppress(OSError):  # an optimization only
            for begin in (end - _STEP, end - _STEP - _LAG):
                if begin >= _KEPT:
                    os.posix_fadvise(self.fileno(), begin, _STEP, os.POSIX_FADV_DONTNEED)


# Bytes: kept in the page cache; dropped at a time; distance from the last write.
_KEPT, _STEP, _LAG = 1 << 26, 1 << 24, 1 << 25


def discard_stdout() -> None:
    """Redirect stdout to /dev/null, or Python would retry the failed write at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_terminal(path: str | None) -> bool:
    """Whether the output is a terminal; path: a file in place of stdout."""
    return path is None and sys.stdout is not None and sys.stdout.isatty()


def terminal_width(path: str | None) -> int | None:
    """The width of the terminal; None for files and pipes."""
    return terminal_columns() if is_terminal(path) else None


def terminal_columns() -> int:
    """The characters of a line, as `shutil.get_terminal_size` determines them.

    Importing shutil takes 2 ms.
    """
    with suppress(ValueError):
        if (columns := int(os.environ.get("COLUMNS", "0"))) > 0:
            return columns
    with suppress(ValueError, OSError):
        return (sys.__stdout__ and os.get_terminal_size(sys.__stdout__.fileno()).columns) or 80
    return 80


def flush_stdout() -> None:
    """Write out help or the version. Like argparse, ignore errors: Python would report them."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        discard_stdout()


class Bar:
    """One progress bar, with the time left, for all that a command reads; prints nothing unless
    stderr is a terminal, nor in the first second."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._what = ""
        self._parts: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, what: str, rows: int, total: int) -> None:
        """Show that `rows` of about `total` rows of `what` are read; the bar adds up its parts.

        With `total` 0 or less, print the name `what` once.
        """
        if sys.stderr is None or not sys.stderr.isatty():
            return
        if total <= 0:
            if what != self._what:
                self._what = what
                log(f"{what} ...")
            return
        if rows < self._parts.get(what, (0, 0))[0]:  # the next file
            self.__exit__(None, None, None)
            self._bar, self._parts = None, {}
        self._parts[what] = rows, max(rows, total)
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                desc="reading", unit="", delay=1, miniters=1, unit_scale=True, leave=False
            )
        done, self._bar.total = map(sum, zip(*self._parts.values(), strict=True))
        self._bar.update(max(0, done - self._bar.n))


def log(message: str) -> None:
    """Print one line on stderr, control characters replaced; does nothing if stderr is closed."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"fastprof: {printable(message)}", file=sys.stderr)


def log_profile(profile: Profile) -> None:
    """Print the warnings, kernel count and coverage of a profile on stderr."""
    for warning in profile.warnings:
        log(f"warning: {warning}")
    if sys.stderr is None:
        return
    with suppress(OSError):
        if len(profile) == 0:
            print("Found 0 kernels. Exiting.", file=sys.stderr)
        else:
            print(f"Found {len(profile)} kernels. {profile.coverage}", file=sys.stderr)
    if profile.graph_capture is not None:
        log(f"{profile.graph_capture}")
