"""Compiles each driver in this folder with ASan and UBSan, and runs it."""

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

from csrc import sanitized
from support import processes
from support.hypothesis_profiles import IS_FULL, PROFILE

HERE = Path(__file__).resolve().parent
CSRC = HERE.parent.parent / "csrc"
DRIVERS = sorted(path.stem for path in HERE.glob("*.c"))
FLAGS = ("-std=c11", "-g", "-O0", "-Wall", "-Wextra", "-fno-sanitize-recover=all")
MEMORY = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"
# Drivers that replace functions of the C library.
WRAP = {"memory": [MEMORY], "pages": [MEMORY, "-Wl,--wrap=pread,--wrap=pread64"]}

LEAK = """
#include <stdlib.h>
int main(void) {
  void *volatile lost = malloc(10);
  lost = NULL;
  return lost != NULL;
}
"""

RACE = """
#include <pthread.h>
static int shared;
static void *write_it(void *unused) { shared++; return unused; }
int main(void) {
  pthread_t one, other;
  pthread_create(&one, NULL, write_it, NULL);
  pthread_create(&other, NULL, write_it, NULL);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
  return 0;
}
"""


def run(program, **variables):
    return processes.ran([program], env=os.environ | variables)


def compile_to(program, source, *flags, sanitizers=sanitized.MEMORY):
    command = [sanitized.COMPILER, *FLAGS, f"-fsanitize={sanitizers}", f"-I{CSRC}", source]
    subprocess.run([*command, *flags, "-pthread", "-lm", "-o", program], check=True)


@pytest.fixture(scope="session")
def program_of():
    """Compiles a driver beside the archive, if it is older than what it is made of."""
    if sanitized.why_not():
        pytest.skip(sanitized.why_not())
    archive = sanitized.archive()
    (archive.parent / "drivers").mkdir(exist_ok=True)
    common = max(map(modified, (archive, Path(__file__), *HERE.glob("*.h"), *CSRC.rglob("*.h"))))

    @functools.cache
    def compiled(driver):
        program, source = archive.parent / "drivers" / driver, HERE / f"{driver}.c"
        if modified(program) < max(common, modified(source)):
            made = program.with_suffix(f".{os.getpid()}")
            compile_to(made, source, archive, *WRAP.get(driver, ()))
            made.replace(program)
        return program

    return compiled


def modified(path):
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_driver_runs_without_a_complaint_of_the_sanitizers(driver, finds_leaks, program_of):
    options = f"detect_leaks={int(finds_leaks)}:allocator_may_return_null=1"
    variables = {"FASTPROF_ALL_ROUNDS": "1"} if IS_FULL else {}  # see rounds in check.h
    variables |= {"ASAN_OPTIONS": options, "UBSAN_OPTIONS": "print_stacktrace=1"}
    program = program_of(driver)
    # A driver does the same each time: what `make asan` ran, `make test` need not run again.
    passed = program.with_suffix(f".passed-{PROFILE}-{int(finds_leaks)}")
    if modified(passed) < modified(program):
        done = run(program, **variables)
        assert done.returncode == 0, done.stderr[-4000:]
        passed.touch()


def test_threads_share_without_a_complaint_of_the_thread_sanitizer(tmp_path):
    if sanitized.why_not("thread"):
        pytest.skip(sanitized.why_not("thread"))
    (tmp_path / "race.c").write_text(RACE)
    compile_to(tmp_path / "race", tmp_path / "race.c", sanitizers="thread")
    if "data race" not in run(tmp_path / "race").stderr:
        pytest.skip("ThreadSanitizer does not work here")
    archive = sanitized.archive("thread")
    compile_to(tmp_path / "threads", HERE / "threads.c", archive, sanitizers="thread")
    done = run(tmp_path / "threads", TSAN_OPTIONS="halt_on_error=1")
    assert (done.returncode, done.stderr[-4000:]) == (0, "")


def test_leaks_are_found(finds_leaks):
    if not finds_leaks:
        pytest.skip("LeakSanitizer does not work here: the drivers ran without it")
    assert finds_leaks


def symbols(path, *options):
    """The symbols that each object of an archive defines, by its name; those of a program by ""."""
    listing = processes.ran(["nm", "--defined-only", *options, path], check=True).stdout
    result = {}
    name = ""
    for line in filter(None, listing.splitlines()):
        if heading := re.fullmatch(r"(.*):", line):
            name = heading[1]
        else:
            result.setdefault(name, set()).add(line.split()[-1])
    return result


def test_the_drivers_link_every_c_file(program_of):
    exported = symbols(sanitized.archive(), "--extern-only")
    assert {name.removesuffix(".o") for name in exported} == {p.stem for p in CSRC.rglob("*.c")}
    linked = set().union(*(symbols(program_of(driver))[""] for driver in DRIVERS))
    assert {name for name, given in exported.items() if not given & linked} == set()
