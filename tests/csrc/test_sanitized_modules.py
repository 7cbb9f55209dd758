"""Builds the modules with sanitizers and bounds checks, and runs tests with them."""

import os
import re
import shutil
import sys

import pytest

from csrc import sanitized
from support import processes

ROOT = sanitized.ROOT
COPIED = ("pyproject.toml", "python", "tests", "bench")
NOT_COPIED = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info", "out")
UNITS = (
    "_core/test_rows.py",
    "readers/test_dict_lines.py",
    "readers/kineto/test_file.py",
    "readers/nvprof/test_reader.py",
)
TESTS = ("tests/property", "tests/fuzz/test_fuzz.py", *(f"tests/unit/{name}" for name in UNITS))
# Reads one file of each kind, several times, and leaves what it does not free to LeakSanitizer.
READ_ALL = """
import sys
from fastprof import cli
for path in sys.argv[1:]:
    for way in (["prof", "--csv", "--all"], ["parse"]):
        for _ in range(3):
            assert cli.main([*way, path, "-o", path + ".out"]) == int("damaged" in path)
"""
N_CORES = str(os.cpu_count() or 1)

pytestmark = pytest.mark.slow


def call(command, folder, **variables):
    done = processes.ran(command, cwd=folder, env=os.environ | variables, timeout=None)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """A folder with the package, its sanitized modules and its tests; the variables to use it."""
    if sanitized.why_not():
        pytest.skip(sanitized.why_not())
    result = call([sanitized.COMPILER, "-print-file-name=libasan.so"], ROOT)
    asan = result.strip()
    if not os.path.isabs(asan):
        pytest.skip(f"{sanitized.COMPILER} has no libasan.so")
    folder = tmp_path_factory.mktemp("sanitized")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy(ROOT / name, folder / name)
    sanitized.build(sanitized.MEMORY, "build_ext", "--build-lib", str(folder / "python"))
    return folder, {
        "PYTHONPATH": os.pathsep.join([str(folder / "python"), str(folder / "tests")]),
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": asan,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "FASTPROF_DATA": os.environ.get("FASTPROF_DATA", str(ROOT.parent / "shared" / "data")),
    }


def test_the_sanitized_modules_are_imported(modules):
    folder, variables = modules
    where = "from fastprof._core import _nest; print(_nest.__file__)"
    assert call([sys.executable, "-c", where], folder, **variables).startswith(str(folder))


def test_tests_pass_with_sanitizers_and_bounds_checks(modules):
    folder, variables = modules
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *TESTS]
    command += ["--hypothesis-profile", "ci"]  # sanitizers are slow: no deadlines
    said = call([*command, "-n", N_CORES, "--dist", "load"], folder, **variables)
    assert re.search(r"[0-9]{3} passed", said), said


def test_the_c_core_frees_what_it_allocates(modules, finds_leaks, tmp_path):
    if not finds_leaks:
        pytest.skip("LeakSanitizer does not work here")
    from fuzz.corpus import corpus

    folder, variables = modules
    paths = []
    for seed in corpus(real=False).values():
        (tmp_path / seed.name).write_bytes(seed.content)
        (tmp_path / f"{seed.name}-damaged").write_bytes(seed.content[:100])
        paths += [str(tmp_path / seed.name), str(tmp_path / f"{seed.name}-damaged")]
    leaks = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=0"}
    done = processes.python("-c", READ_ALL, *paths, env=os.environ | variables | leaks, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "LeakSanitizer: detected memory leaks" in done.stderr  # some of Python's own
    # What counts is what our C files asked for.
    records = re.split(r"\n\s*\n", done.stderr)
    ours = [record for record in records if re.search(r" in fp_\w+ .*/csrc/", record)]
    assert ours == []
