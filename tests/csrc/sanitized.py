"""Builds the C core with sanitizers, in folders of build/ that later runs reuse."""

import fcntl
import functools
import os
import shutil
import sysconfig
from pathlib import Path

from support import processes

ROOT = Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CC", "gcc")
MEMORY = "address,undefined"


@functools.cache
def why_not(sanitizers: str = MEMORY) -> str | None:
    """Why no program can be built with these sanitizers, or None."""
    if shutil.which(COMPILER) is None:
        return f"no compiler {COMPILER}"
    command = [COMPILER, f"-fsanitize={sanitizers}", "-x", "c", "-", "-o", os.devnull]
    program = "int main(void) { return 0; }"
    done = processes.ran(command, input=program)
    return f"{COMPILER} has no {sanitizers}: {done.stderr[-200:]}" if done.returncode else None


def build(sanitizers: str, *words: str) -> Path:
    """Run a setup.py command with sanitizers and assertions; returns the folder of its objects."""
    abi = sysconfig.get_config_var("SOABI")
    folder = ROOT / "build" / f"{sanitizers.replace(',', '-')}-debug-{abi}"
    folder.mkdir(parents=True, exist_ok=True)
    variables = {"FASTPROF_SANITIZE": sanitizers, "FASTPROF_DEBUG": "1", "CC": COMPILER}
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        variables = os.environ | variables
        done = processes.python(
            "setup.py", "--quiet", *words, cwd=ROOT, env=variables, timeout=None
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@functools.cache
def archive(sanitizers: str = MEMORY) -> Path:
    """The static library of csrc."""
    return build(sanitizers, "build_clib") / "core" / "libfastprof.a"
