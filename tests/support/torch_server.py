"""A process that has imported torch, and forks for each program that it is asked to run.

A new interpreter takes two seconds to import torch, and four with the compiler, which torch's
profiler imports too; where there is a GPU, each fork imports the compiler. The forks have imported
neither fastprof nor nvtx. The program's stack begins with the server's frames, and at its end torch
is not freed, which takes longer than most programs. Tests of start-up, imports, whole stacks and
freed modules run `python PROGRAM` instead.
"""

import atexit
import gc
import importlib.util
import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from support import command_server
from support.waiting import PATIENCE

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # others would not be forked
COMPILER = "torch._inductor.compile_fx"  # uses a GPU, which forks then cannot
GPUS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
# Before a program in a fork: begins what the sitecustomize of `fastprof run` begins elsewhere.
BEGIN = "from fastprof.annotate.program.begin import begin\nbegin()\n"
_codes: list[int] = []  # with which the program ends


def command(program: str | os.PathLike[str], *arguments: str | os.PathLike[str]) -> list[str]:
    """The words that run a program like `python program arguments`, in a fork of the server.

    Skips the test if torch is not installed.
    """
    import pytest  # not in the server, nor in its forks

    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: make test TORCH=2.13.0")
    return [
        *command_server.client("support.torch_server"),
        *map(os.fsdecode, (program, *arguments)),
    ]


def run(
    program: str | os.PathLike[str], *arguments: str | os.PathLike[str], **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    options = {"capture_output": True, "text": True, "timeout": PATIENCE, **options}
    return subprocess.run(command(program, *arguments), **options)


def run_source(source: str, directory: Path) -> None:
    """Run Python source, which may be indented; it must succeed."""
    program = directory / "program_of_test.py"
    program.write_text(textwrap.dedent(source))
    done = run(program)
    assert done.returncode == 0, done.stderr


def _become(words: list[str]) -> None:
    """Run the program as `__main__`."""
    path = os.path.abspath(words[0])
    sys.argv[:] = words
    added = os.environ.get("PYTHONPATH", "")
    sys.path[:1] = [os.path.dirname(path), *filter(None, added.split(os.pathsep))]
    try:
        runpy.run_path(path, run_name="__main__")
        _codes.append(0)
    except SystemExit as end:
        _codes.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    except Exception:
        _codes.append(1)
        raise


def _leave() -> None:
    """The last of all exit handlers. A program that Ctrl-C ended goes on to Python's own end."""
    if _codes:
        command_server.leave(_codes[-1])


if __name__ == "__main__":
    atexit.register(_leave)
    os.environ.update(ONE_THREAD)
    __import__("torch")
    if not any(map(os.path.exists, GPUS)):
        __import__(COMPILER)
    gc.collect()
    gc.freeze()
    _become(command_server.serve(sys.argv[1]))
