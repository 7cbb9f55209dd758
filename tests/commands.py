"""Runs the command in its own process and compares the folder before and after."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import command_server
from waiting import PATIENCE


def command(*words: str | os.PathLike[str]) -> list[str]:
    """The command line of `fastprof` with these arguments."""
    return [sys.executable, "-m", "fastprof", *map(os.fsdecode, words)]


def forked(*words: str | os.PathLike[str]) -> list[str]:
    """A command line that does the same in a fork of the command server, sooner.

    For its standard streams, directory, environment and limit of the size of files, not for
    signals.
    """
    return [*command_server.client(), *map(os.fsdecode, words)]


def run(
    *words: str | os.PathLike[str], stdin: bytes = b"", **others: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end: in a fork of the command server, or with options in a new interpreter.

    The options that a fork takes, too, are `cwd`, `stdout` and `file_size`, the largest that a
    file may be.
    """
    options = {"input": stdin, "capture_output": True, "timeout": PATIENCE, **others}
    if "stdout" in others:
        options |= {"capture_output": False, "stderr": subprocess.PIPE}
    if "file_size" in others:
        sizes = (options.pop("file_size"),) * 2
        options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, sizes)
    start = forked if others.keys() <= {"cwd", "stdout", "file_size"} else command
    return subprocess.run(start(*words), **options)


def state_of(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def one_line(done: subprocess.CompletedProcess[bytes], code: int = 1) -> str:
    """The single line of a failing command on stderr."""
    message = done.stderr.decode()
    assert done.returncode == code, message
    assert message.count("\n") == 1, message
    assert message.endswith("\n")
    assert message.startswith("fastprof: ")
    assert done.stdout == b""
    return message


def refusal(path: Path, folder: Path) -> str:
    """The error of both commands for a file; nothing in the folder may change."""
    before = state_of(folder)
    messages = {
        one_line(run("parse", path, "-o", folder / "out")),
        one_line(run("prof", "--csv", path)),
    }
    assert state_of(folder) == before
    (message,) = messages
    assert os.fsdecode(path) in message
    return message
