"""Compiles each driver beside this file under ASan and UBSan and runs it."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from waiting import PATIENCE

HERE = Path(__file__).resolve().parent
CSRC = HERE.parent.parent / "csrc"
COMPILER = os.environ.get("CC", "gcc")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLAGS = ("-std=c11", "-g", "-O1", "-Wall", "-Wextra", *SANITIZE, f"-I{CSRC}", f"-I{HERE}")
MEMORY = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"
# The drivers that stand between the C files and the C library.
WRAP = {
    "memory": [MEMORY],
    "pages": [MEMORY, "-Wl,--wrap=pread,--wrap=pread64", "-lm"],
    "threads": ["-pthread", "-lm"],
}

KINETO = "kineto kineto_event kineto_events kineto_rows kineto_texts json decimal"
# The C files that each driver is linked with.
C_FILES = {
    "names": "names keys",
    "blocks": "blocks",
    "threads": "walk record btree pages column names keys join blocks",
    "join": "join",
    "nest": "nest itree order tree",
    "path": "path tree link share take",
    "calls": "calls",
    "rows": "rows seqmarkers",
    "dict": "dict literal names",
    "kineto": f"{KINETO} names keys",
    "scan": "scan column names keys",
    "pages": "walk record btree pages column names keys",
    "memory": f"scan column names keys dict literal seqmarkers join link path tree itree {KINETO}",
}
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
    return subprocess.run(
        [program], env=os.environ | variables, capture_output=True, text=True, timeout=PATIENCE
    )


def compile_to(program, sources, *flags):
    sources = [str(source) for source in sources]  # libraries come behind what needs them
    subprocess.run([COMPILER, *FLAGS, *sources, *flags, "-o", program], check=True)


def sources_of(driver):
    return [HERE / f"{driver}.c", *(CSRC / f"fp_{name}.c" for name in C_FILES[driver].split())]


@functools.cache
def why_not():
    """Why nothing can be sanitized here, or None."""
    if shutil.which(COMPILER) is None:
        return f"no compiler {COMPILER}"
    command = [COMPILER, *SANITIZE, "-x", "c", "-", "-o", os.devnull]
    made = subprocess.run(
        command, input="int main(void) { return 0; }", capture_output=True, text=True
    )
    return f"{COMPILER} has no sanitizers: {made.stderr[-200:]}" if made.returncode else None


@pytest.mark.parametrize("driver", C_FILES)
def test_driver_runs_without_a_complaint_of_the_sanitizers(driver, finds_leaks, tmp_path):
    program = tmp_path / driver
    compile_to(program, sources_of(driver), *WRAP.get(driver, ()))
    options = f"detect_leaks={int(finds_leaks)}:allocator_may_return_null=1"
    done = run(program, ASAN_OPTIONS=options, UBSAN_OPTIONS="print_stacktrace=1")
    assert done.returncode == 0, done.stderr[-4000:]


def test_threads_share_without_a_complaint_of_the_thread_sanitizer(tmp_path):
    if why_not():
        pytest.skip(why_not())
    thread = ("-fno-sanitize=all", "-fsanitize=thread", "-pthread", "-lm")
    (tmp_path / "race.c").write_text(RACE)
    try:
        compile_to(tmp_path / "race", [tmp_path / "race.c"], *thread)
    except subprocess.CalledProcessError:
        pytest.skip(f"{COMPILER} has no ThreadSanitizer")
    if "data race" not in run(tmp_path / "race").stderr:
        pytest.skip("ThreadSanitizer does not work here")
    compile_to(tmp_path / "threads", sources_of("threads"), *thread)
    done = run(tmp_path / "threads", TSAN_OPTIONS="halt_on_error=1")
    assert (done.returncode, done.stderr[-4000:]) == (0, "")


def test_leaks_are_found(finds_leaks):
    if not finds_leaks:
        pytest.skip("LeakSanitizer does not work here: the drivers ran without it")
    assert finds_leaks


def test_every_driver_and_every_c_file_is_run():
    linked = {name for names in C_FILES.values() for name in names.split()}
    assert {path.stem for path in HERE.glob("*.c")} == set(C_FILES)
    assert {path.stem.removeprefix("fp_") for path in CSRC.glob("*.c")} == linked
