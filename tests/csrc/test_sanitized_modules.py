"""Builds the modules anew, sanitized or with bounds checks, and runs tests on what was built."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT_FROM = ("setup.py", "pyproject.toml", "csrc", "src", "python")
NOT_COPIED = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info", "_*.c")
UNITS = ("test_rows.py", "test_dict_reader.py", "test_kineto_file.py")
TESTS = ("tests/property", *(f"tests/unit/{name}" for name in UNITS))

pytestmark = pytest.mark.slow


def call(command, folder, **variables):
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


def build(folder, **variables):
    """A copy of the tree in the folder, with its modules built in place."""
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy(ROOT / name, folder / name)
    call([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], folder, **variables)


def run_tests(folder, **variables):
    python = str(folder / "python")
    variables |= {"PYTHONPATH": python, "PYTHONMALLOC": "malloc"}
    where = "from fastprof import _nest; print(_nest.__file__)"
    assert call([sys.executable, "-c", where], folder, **variables).startswith(python)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=NOT_COPIED)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *TESTS]
    return call(command, folder, **variables)


def test_modules_under_asan_and_ubsan_pass(tmp_path):
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler {compiler}")
    found = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    asan = Path(found.stdout.strip())
    if not asan.is_absolute():
        pytest.skip(f"{compiler} has no libasan.so")
    build(tmp_path, FASTPROF_SANITIZE="1")
    run_tests(
        tmp_path,
        LD_PRELOAD=str(asan),
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )


def test_modules_with_bounds_checks_pass(tmp_path):
    if shutil.which(os.environ.get("CC", "gcc")) is None:
        pytest.skip("no compiler")
    build(tmp_path, FASTPROF_DEBUG="1")
    run_tests(tmp_path)
