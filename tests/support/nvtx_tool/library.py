"""Builds a library that NVTX loads, and one that exports NVTX's functions, from C files.

Set NVTX_INJECTION64_PATH to `LIBRARY` and FASTPROF_NVTX_LOG to a prefix: a program then writes one
log per process.
"""

import atexit
import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADER = "nvtx3/nvToolsExt.h"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared")


class Unavailable(Exception):
    """Recording is not available; the message gives the reason."""


def headers() -> Path:
    """The directory of the headers in a PyPI package of CUDA 13 or 12.

    Raises
    ------
    Unavailable
        No package with headers is installed.
    """
    spec = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    result = [header for place in places for header in sorted(place.glob(f"*/include/{HEADER}"))]
    if not result:
        raise Unavailable(f"no {HEADER}: pip install nvidia-nvtx")
    return result[0].parents[1]


@cache
def library() -> Path:
    """The recording library, built once per process.

    Raises
    ------
    Unavailable
        When there is no compiler, or no header.
    """
    flags = ("-fvisibility=hidden", "-Wl,-z,nodelete", "-pthread")
    return _build("recorder", *flags, "injection.c", "log.c")


@cache
def core_api() -> Path:
    """A library that exports every function of NVTX's core, nvtxRangePushA and so on.

    Raises
    ------
    Unavailable
        When there is no compiler, or no header.
    """
    return _build("api", "api.c", "-ldl")


@cache
def why_not() -> str | None:
    """The reason why recording is not available, or None."""
    try:
        library()
    except Unavailable as error:
        return str(error)
    return None


@cache
def _directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="fastprof-nvtx-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _build(name: str, *arguments: str) -> Path:
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        raise Unavailable(f"no C compiler {compiler[0]}")
    made = _directory() / f"{name}.so"
    command = [*compiler, *FLAGS, f"-I{headers()}", *arguments, "-o", str(made)]
    subprocess.run(command, cwd=HERE, check=True)
    return made
