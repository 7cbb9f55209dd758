"""Every command with every output format, found by walking the parser of the command line.

A new command, option or format is covered by itself.
"""

import argparse
import contextlib
import functools
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fastprof.cli import main, parser
from fastprof.cli.output import INPUTS, OUTPUTS
from fastprof.exports.registry import FORMATS

STARTS_PROGRAMS = ("run", "nsys", "mcp")  # or serves clients
READS_NOTHING = ("devices", *STARTS_PROGRAMS)
# Words that a required option needs.
NEEDED = {"to": ["--to", "csv"]}
NOT_A_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:nan|inf|infinity)(?![\w-])", re.IGNORECASE)


@functools.cache
def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("the command line has no commands")


def path_options(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments that look as if they name a file or directory."""
    words = {"FILE", "DIR", "OUT", "PATH", "CAPTURE", "TRACE", "BEFORE", "AFTER"}
    for action in command._actions:
        text = action.metavar if isinstance(action.metavar, str) else ""
        if words & {*re.findall("[A-Z]+", text)}:
            yield action


def reading(name: str, file: Path, *, beside: Path | None = None) -> list[str]:
    """The words of a command that reads a file, and for `diff` another one, with what it needs."""
    words = [name]
    for action in commands()[name]._actions:
        if action.required and action.option_strings:
            words += NEEDED[action.dest]
        elif action.dest == "captures":
            words += [str(file), str(beside or file)]
        elif action.dest in (*INPUTS, "store") and not action.option_strings:
            words.append(str(file))
    return words


def outputs(name: str) -> list[str]:
    """The options of a command that name an output file."""
    if name in READS_NOTHING:
        return []
    return [
        action.option_strings[-1]
        for action in commands()[name]._actions
        if action.dest in OUTPUTS and action.option_strings
    ]


def formats(name: str) -> Iterator[list[str]]:
    """The words of each output format of a command, and of each of its switches; first none."""
    yield []
    for action in commands()[name]._actions:
        option = action.option_strings[-1] if action.option_strings else ""
        if isinstance(action, argparse._StoreTrueAction):
            yield [option]
        elif action.choices and option:
            yield from ([option, str(choice)] for choice in action.choices)
        elif action.dest == "width":
            yield [option, "150"]
        elif action.dest == "to":
            yield from ([option, format_] for format_ in FORMATS)


def invocations(name: str, file: Path, folder: Path) -> Iterator[list[str]]:
    """A command on a file in all its formats; output that is not text goes to a folder."""
    if name in STARTS_PROGRAMS:
        return
    if name in READS_NOTHING:
        yield from ([name, *words] for words in formats(name))
        return
    for words in formats(name):
        if words[:1] in (["--save"], ["--no-progress"]):
            continue
        more = ["-o", str(folder / "out.html")] if name == "report" else []
        if name in ("batch", "report"):
            more += ["-j", "1"] if name == "batch" else []
        yield [*reading(name, file), *words, *more]


class Done(NamedTuple):
    """How a command ended, and what it wrote on standard output and standard error."""

    code: int
    out: str
    err: str


class Stream(io.TextIOWrapper):
    """A standard stream in memory, on a terminal or not."""

    def __init__(self, on_terminal: bool) -> None:
        memory = _Terminal() if on_terminal else io.BytesIO()
        super().__init__(memory, "utf-8", "surrogateescape", newline="", write_through=True)

    def text(self) -> str:
        """What was written, bytes that are not UTF-8 as surrogates."""
        self.flush()
        return self.buffer.getvalue().decode("utf-8", "surrogateescape")  # type: ignore[attr-defined]


class _Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def run_here(*words: str | os.PathLike[str], on_terminal: bool = False) -> Done:
    """Run a command in this process."""
    out, err = Stream(on_terminal), Stream(False)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([os.fsdecode(word) for word in words])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, out.text(), err.text())


def problem(done: Done) -> str:
    """What is wrong with the end of a command; "" if nothing."""
    lines = [
        line for line in done.err.splitlines() if not re.match("fastprof: warning|Found", line)
    ]
    if done.code not in (0, 1, 2):
        return f"exit code {done.code}: {done.err}"
    # `batch` tells the reason for each file, and how many could not be read.
    errors = [line for line in lines if re.match(r"fastprof: (?!\d+ of \d+ files )", line)]
    if done.code == 1 and len(errors) != 1:
        return f"no clear line: {done.err}"
    if done.code == 2 and "error: " not in lines[-1]:
        return f"no usage error: {done.err}"
    match = NOT_A_NUMBER.search(done.out + done.err)
    return f"prints {match[0]}" if match else ""
