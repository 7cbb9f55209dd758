"""Starts the user's program with the recording hooks, and waits for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from fastprof._system.signals import deferred
from fastprof.errors import BadInputError
from fastprof.readers.beside import COMPILED
from fastprof.runs.facts import NOW, PID, STATUS, VARIABLE, Settings
from fastprof.runs.nsys import started
from fastprof.runs.rocprof import words_before

# Variables of torch: the folder of the structured log, nodes of kernels in it, the debug mode.
_LOG, _PROVENANCE, _DEBUG = "TORCH_TRACE", "INDUCTOR_PROVENANCE", "TORCH_COMPILE_DEBUG"
STARTUP = Path(__file__).with_name("startup")
# From a terminal, these reach the program without our help.
_OF_TERMINAL = ("SIGINT", "SIGQUIT")
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1")


def python_command(words: Sequence[str]) -> list[str]:
    """The command line of a program: `train.py ...` and `-m MODULE ...` run with this Python."""
    if words[0] == "-m" or (words[0].endswith(".py") and not os.access(words[0], os.X_OK)):
        return [sys.executable, *words]
    return list(words)


def program_name(command: Sequence[str]) -> str:
    """The name of a program: that of its module or script, else of its executable."""
    words = iter(command[1:])
    for word in words:
        module = next(words, "module") if word == "-m" else None
        if module is not None and module not in _LAUNCHERS:
            return module
        if word.endswith(".py"):
            return Path(word).stem
    return Path(command[0]).stem


def environment(settings: Settings) -> dict[str, str]:
    """The environment of the program: its Pythons import `startup/sitecustomize.py`.

    torch.compile writes its structured log, with the nodes of its kernels, into the directory of
    the run, unless the user has chosen where it goes.
    """
    paths = [str(STARTUP), os.environ.get("PYTHONPATH", "")]
    compiled = {_LOG: str(Path(settings.directory) / COMPILED), _PROVENANCE: "1"}
    return {
        **({} if {_LOG, _PROVENANCE, _DEBUG} & os.environ.keys() else compiled),
        **os.environ,
        VARIABLE: settings.to_environment(),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def run_program(command: Sequence[str], settings: Settings, before: Sequence[str] = ()) -> int:
    """Run the program with our stdin, stdout and stderr, and return its exit code.

    Signals go to the program, except SIGUSR2, which asks it for a recording. If a signal ended the
    program, the exit code is its negative number; under nsys it is 128 plus the number.

    Parameters
    ----------
    command : the program with its arguments
    settings : what to record
    before : the words of nsys or rocprofv3, if it starts the program

    Raises
    ------
    BadInputError
        The program cannot be started.
    """
    variables = environment(settings)
    directory = Path(settings.directory)
    with ExitStack() as stack:
        try:
            with deferred():
                if before and settings.backend == "roctx":
                    words = words_before(before, command, settings.directory, variables)
                    running = subprocess.Popen([*words, *command], env=variables)
                elif before:
                    running = stack.enter_context(started(before, command, directory, variables))
                else:
                    running = subprocess.Popen(list(command), env=variables)
        except OSError as error:
            what = error.filename or command[0]
            raise BadInputError(f"{what}: cannot be started: {error.strerror}") from error
        with _forwarding(running, directory):
            return running.wait()


def end_like(code: int) -> int:
    """The exit code of a program, for ours; if a signal ended it, the signal ends this process."""
    if code >= 0:
        return code
    with suppress(OSError, ValueError, ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has written its own
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


@contextmanager
def _forwarding(running: subprocess.Popen[bytes], directory: Path) -> Iterator[None]:
    """Forward signals to the program within the block."""

    def forward(number: int, _: FrameType | None) -> None:
        if signal.Signals(number).name not in _OF_TERMINAL or not _in_foreground():
            _send(running, directory, number)

    def ask(_: int, __: FrameType | None) -> None:
        with suppress(OSError):
            (directory / NOW).write_text(uuid.uuid4().hex)
            _signal_resting(directory)

    handlers = dict.fromkeys((*_OF_TERMINAL, *_FORWARDED), forward)
    before = {}
    for name, handler in {**handlers, "SIGUSR2": ask}.items():
        number = getattr(signal, name, None)
        if number is not None:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _send(running: subprocess.Popen[bytes], directory: Path, number: int) -> None:
    """Send a signal to the program; to nsys before the program starts and after it ends."""
    try:
        os.kill(int((directory / PID).read_text()), number)
    except (OSError, ValueError):
        with suppress(OSError):
            running.send_signal(number)


def _signal_resting(directory: Path) -> None:
    """Send SIGUSR2 to the processes that wait for it, since they do not look for the request."""
    for path in directory.glob(f"{STATUS}-*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            report = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
            if report["is_signalled"] and _handles(report["pid"], signal.SIGUSR2):
                os.kill(report["pid"], signal.SIGUSR2)


def _handles(pid: int, number: int) -> bool:
    """Whether a process of ours has a handler for a signal, which would end it otherwise."""
    if not os.path.isdir("/proc/self"):
        return True
    if VARIABLE.encode() not in Path(f"/proc/{pid}/environ").read_bytes():
        return False
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next((line for line in lines if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def _in_foreground() -> bool:
    """Whether this process belongs to the terminal's foreground: Ctrl-C reaches the program too."""
    for descriptor in (0, 1, 2):
        with suppress(OSError):
            return os.tcgetpgrp(descriptor) == os.getpgrp()
    return False
