"""Source files that a trace names, where they exist on this machine."""

from __future__ import annotations

import ast
import stat
import warnings
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from fastprof._system.classes import NamedTuple

_LARGEST: Final = 8 << 20  # bytes


class SourceFunction(NamedTuple):
    """A function of a source file: qualified name, first and last line, counted from 1."""

    name: str
    first: int
    last: int


class SourceFile:
    """A source file. `lines`: its lines without line ends."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        # Python's lines end in nothing else; splitlines also splits at form feeds.
        self.lines = self._text.removesuffix("\n").split("\n")

    @cached_property
    def functions(self) -> list[SourceFunction]:
        """The functions, outer before inner ones; none if it is not valid Python."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return list(_functions(ast.parse(self._text), ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []

    def function_at(self, line: int) -> SourceFunction | None:
        """The innermost function that contains a line."""
        around = [each for each in self.functions if each.first <= line <= each.last]
        return around[-1] if around else None

    def line(self, number: int | None) -> str | None:
        """The text of a line, None beyond the end."""
        if number is None or not 1 <= number <= len(self.lines):
            return None
        return self.lines[number - 1]


def _functions(node: ast.AST, around: str) -> Iterator[SourceFunction]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = around + child.name
            if not isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                yield SourceFunction(name, first, child.end_lineno or child.lineno)
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, around)


class SourceFiles:
    """Finds source files by the paths in a trace, and reads each once.

    Parameters
    ----------
    folder : searched first, for the longest end of the path that exists below it; then the path
        itself, relative to the working directory
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._read: dict[str, SourceFile | None] = {}

    def find(self, path: str) -> SourceFile | None:
        """A Python source file, None if it is not on this machine."""
        if path not in self._read:
            self._read[path] = next(filter(None, map(_opened, self._places(path))), None)
        return self._read[path]

    @property
    def missing(self) -> list[str]:
        """The files that were not found."""
        return [path for path, file in self._read.items() if file is None]

    def _places(self, path: str) -> Iterator[Path]:
        # A trace is untrusted: only Python files are read, below the folder without `..`.
        if not path.endswith(".py") or "\0" in path:
            return
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if self._folder is not None:
            for i in range(len(parts)):
                yield self._folder.joinpath(*parts[i:])
        yield Path(path)


def _opened(path: Path) -> SourceFile | None:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            return None
        return SourceFile(path.read_bytes().decode("utf-8-sig", "replace"))
    except (OSError, ValueError):
        return None
