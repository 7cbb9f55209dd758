"""Run Python programs in forked children of a process that has imported the large packages.

An import of torch takes seconds, and a GPU is dear. The parent never initialises CUDA.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

PACKAGES = ("torch", "torchvision", "timm", "transformers.models.llama", "torch._dynamo")


def import_packages() -> list[str]:
    """Import what the programs use; returns what is missing."""
    missing = []
    for package in PACKAGES:
        try:
            importlib.import_module(package)
        except ImportError:
            missing.append(package)
    return missing


def program(path: Path, arguments: list[str], **environment: str) -> Callable[[], None]:
    """A function that runs a program as `__main__`."""

    def run() -> None:
        os.environ.update(environment)
        sys.argv = [str(path), *arguments]
        sys.path.insert(0, str(path.parent))
        runpy.run_path(str(path), run_name="__main__")

    return run


def run_forked(function: Callable[[], None], seconds: float) -> dict:
    """Run a function in a child: its last line as JSON, or `error` with the end of its output.

    A child that takes longer than `seconds` is killed, with its children.
    """
    start = time.perf_counter()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        os.close(reader)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        code = 1
        try:
            function()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    output, ended = _output(reader, start + seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    result: dict = {"seconds": round(time.perf_counter() - start, 2)}
    lines = output.decode(errors="replace").strip().splitlines()
    for line in reversed(lines):
        if line.startswith("{"):
            return result | json.loads(line)
    reason = "no result" if ended else f"killed after {seconds:g} s"
    return result | {"error": reason, "status": status, "output": lines[-25:]}


def _output(reader: int, end: float) -> tuple[bytes, bool]:
    """What comes from a pipe until it is closed or a time (perf_counter) is reached."""
    import select

    output = b""
    with os.fdopen(reader, "rb", buffering=0) as file:
        while (left := end - time.perf_counter()) > 0:
            if not select.select([file], [], [], min(left, 1))[0]:
                continue
            part = file.read(65536)
            if not part:
                return output, True
            output += part
            if b"\n{" in b"\n" + output and output.endswith(b"}\n"):
                return output, True
    return output, False
