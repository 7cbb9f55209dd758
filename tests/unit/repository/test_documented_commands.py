"""Every command that a document shows works, and every option has an example."""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastprof.analysis.reports import all_reports
from fastprof.cli import parser
from support import command_server, processes
from support.documents import ROOT, Command, commands, write_files
from support.hypothesis_profiles import some

COMMANDS = list(commands())
# Commands that are parsed but not run: the text that identifies them, and the reason.
NOT_RUN = {
    "--scheduler": "needs a Dask cluster at head:8786 (tests/unit/ranks/test_cluster.py has one)",
    "net.nsys-rep": "needs nsys, which the report is exported by",
    "fastprof run": "runs a program of the user (tests/unit/cli/test_run.py runs its own)",
    "mcp traces/ --http": "serves until it is interrupted (tests/unit/mcp/test_server.py)",
    "nsys --captured": "needs nsys and a GPU (tests/unit/cli/test_nsys.py has a stand-in)",
}
# Prefix of a line: run this Python and this fastprof regardless of the PATH.
FUNCTIONS = """
set -eo pipefail
python() { PYTHON "$@"; }
fastprof() { FASTPROF "$@"; }
"""


def calls_of_fastprof(line: str) -> Iterator[list[str]]:
    """The words behind each `fastprof` of a line of a shell, up to a pipe, `<`, `>` or `--`."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    words: list[str] | None = None
    for word in [*lexer, "|"]:
        if word == "fastprof" and words is None:
            words = []
        elif set(word) <= set("|<>"):
            if words is not None:
                yield words
            words = None
        elif words is not None:
            words.append(word)


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of `fastprof COMMAND`, and under "" that of `fastprof` itself."""
    (action,) = (action for action in parser._actions if isinstance(action.choices, dict))
    return {"": parser, **action.choices}


def why_not(command: Command) -> str | None:
    return next((why for what, why in NOT_RUN.items() if what in command.text), None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of the commands, with the files that they name."""
    folder = tmp_path_factory.mktemp("documents")
    write_files(folder)
    parquet = "fastprof parse net.sqlite -o demo.parquet --format parquet"
    made = run(folder, f"fastprof parse net.sqlite -o net.dict; cp net.dict demo.dict; {parquet}")
    assert made.returncode == 0, made.stderr
    return folder


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    functions = FUNCTIONS.replace("PYTHON", shlex.quote(sys.executable))
    functions = functions.replace("FASTPROF", shlex.join(command_server.client()))
    return processes.ran(
        ["bash", "-c", functions + line],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.DEVNULL,
    )


def run_lines() -> list[str]:
    """The commands that are run: in the fast profile, a quarter of those of each subcommand."""
    by_subcommand: dict[str, list[str]] = {}
    for command in COMMANDS:
        if why_not(command) is None:
            by_subcommand.setdefault(" ".join(command.text.split()[:2]), []).append(command.text)
    return [line for lines in by_subcommand.values() for line in some(lines, 4)]


@pytest.mark.parametrize("line", run_lines(), ids=lambda line: line)
def test_what_a_document_shows_runs(folder: Path, line: str) -> None:
    done = run(folder, line)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr


@pytest.fixture(scope="module")
def command_line() -> argparse.ArgumentParser:
    """The parser of all commands, which takes longer to build than to parse a line."""
    return parser()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.text)
def test_what_a_document_shows_is_understood(
    command: Command, command_line: argparse.ArgumentParser
) -> None:
    for words in calls_of_fastprof(command.text):
        if "--help" in words or "-h" in words or "--version" in words:
            continue
        if words[0].endswith(".sqlite"):  # fastprof FILE
            words = ["overview", *words]
        if words[0].endswith("/"):  # fastprof DIR
            words = ["ranks", *words]
        command_line.parse_args(words)  # or SystemExit


def test_what_is_not_run_is_shown_somewhere() -> None:
    shown = "\n".join(command.text for command in COMMANDS)
    assert [what for what in NOT_RUN if what not in shown] == []


def test_every_option_has_help_and_an_example(command_line: argparse.ArgumentParser) -> None:
    shown: dict[str, set[str]] = {}
    for command in COMMANDS:
        for words in calls_of_fastprof(command.text):
            own = words[: words.index("--")] if "--" in words else words
            name = "" if own[0].startswith("-") else own[0]
            shown.setdefault(name, set()).update(own)
    # Reports share most options: an example with one of them will do.
    of_reports = set().union(*(shown.get(name, set()) for name in all_reports()))
    shown |= dict.fromkeys(all_reports(), of_reports)
    shown["diff"] |= of_reports
    for name, command_parser in subcommands(command_line).items():
        for action in command_parser._actions:
            assert action.help or action.choices, f"fastprof {name}: {action.dest} has no help"
            if not action.option_strings or "-h" in action.option_strings:
                continue
            examples = shown.get(name, set()) & set(action.option_strings)
            assert examples, f"fastprof {name} {action.option_strings[0]}: no document shows it"


@pytest.mark.parametrize(
    "line, calls",
    [
        ("fastprof parse a.sqlite | fastprof prof -c 'idx,op'",
         [["parse", "a.sqlite"], ["prof", "-c", "idx,op"]]),
        ("fastprof prof --json < net.dict > out", [["prof", "--json"]]),
        ("python -m fastprof.prof x", []),
        ("fastprof nsys -w 9 -- python a.py", [["nsys", "-w", "9", "--", "python", "a.py"]]),
    ],
)  # fmt: skip
def test_calls_of_fastprof_are_found_in_a_line(line: str, calls: list[list[str]]) -> None:
    assert list(calls_of_fastprof(line)) == calls
