"""Running out of memory is reported in one line, before reading or when an allocation fails."""

import compileall
import gc
import json
import os
import resource
import sys
import weakref
from pathlib import Path

import pytest
from bench.generate import generate

import fastprof
from fastprof._system import memory
from fastprof.cli import main
from fastprof.page.section import memory_of_page
from fastprof.readers import detect as memory_estimate
from fastprof.readers.detect import detect_trace
from fastprof.readers.sqlite.database import Database
from support import processes
from support.commands import one_line, run
from support.hypothesis_profiles import some

if not sys.platform.startswith("linux"):
    pytest.skip("how much memory there is is known on Linux only", allow_module_level=True)
MB = 1 << 20
GROUP_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")
GROUP_2 = ("memory.max", "memory.current")


@pytest.fixture(autouse=True)
def without_variable(monkeypatch):
    monkeypatch.delenv("FASTPROF_MEMORY", raising=False)


# A machine as /proc and /sys describe it.


def machine(root: Path, free: int, cgroup: str = "", files: dict[str, str] | None = None) -> Path:
    contents = {"proc/meminfo": f"MemTotal: 99 kB\nMemAvailable:  {free} kB\n", **(files or {})}
    contents["proc/self/cgroup"] = cgroup
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_machine_has_what_is_free(tmp_path):
    assert memory.available(machine(tmp_path, 2000)) == (2000 * 1024, "the machine has")


def test_a_system_that_says_nothing_has_no_bound(tmp_path):
    assert memory.available(tmp_path)[0] == float("inf")


@pytest.mark.parametrize(
    ("cgroup", "mount", "names", "prefix"),
    [("0::/a/b\n", "", GROUP_2, ""), ("4:cpu:/x\n3:memory:/a/b\n", "memory/", GROUP_1, "total_")],
)
@pytest.mark.parametrize("level", ["a/b/", "a/", ""])
def test_each_control_group_around_the_process_bounds_it(
    cgroup, mount, names, prefix, level, tmp_path
):
    folder = f"sys/fs/cgroup/{mount}{level}"
    files = {
        folder + names[0]: f"{500 * MB}\n",
        folder + names[1]: f"{400 * MB}\n",
        f"{folder}memory.stat": f"anon 5\n{prefix}inactive_file {30 * MB}\n{prefix}active_file 0\n",
    }
    if level:
        files[f"sys/fs/cgroup/{mount}{names[0]}"] = "max\n"
    root = machine(tmp_path, 1 << 30, cgroup, files)
    assert memory.available(root) == (130 * MB, "its control group leaves")


def test_a_control_group_that_is_used_up_leaves_nothing(tmp_path):
    files = {"sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "2000"}
    assert memory.available(machine(tmp_path, 1 << 30, "0::/\n", files))[0] == 0


def test_the_variable_is_believed(tmp_path, monkeypatch):
    root = machine(tmp_path, 1)
    for text, size in (("7", 7), ("5K", 5 << 10), ("1.5g", 1.5 * 2**30), ("2TiB", 2 << 40)):
        monkeypatch.setenv("FASTPROF_MEMORY", text)
        assert memory.available(root) == (size, "FASTPROF_MEMORY allows")
    monkeypatch.setenv("FASTPROF_MEMORY", "much")
    with pytest.raises(fastprof.FastprofError, match="expected a size"):
        memory.available(root)


def test_what_is_too_much_is_said_with_both_sizes_and_a_way_on(tmp_path, monkeypatch):
    root = machine(tmp_path, 100 << 10)
    memory.require("x", 99 * MB, root)
    with pytest.raises(fastprof.NotEnoughMemoryError) as error:
        memory.require("x", 101 * MB, root)
    for part in ("about 101.0M", "the machine has 100.0M", "FASTPROF_MEMORY=202.0M"):
        assert part in str(error.value)
    monkeypatch.setenv("FASTPROF_MEMORY", "202.0M")
    memory.require("x", 101 * MB, root)


# Real processes.

PEAK = """
import pkgutil, re, sys
import fastprof, numpy, apsw
from fastprof.cli import main
# Modules are no part of an estimate.
for part in ("analysis", "page", "ops", "profile", "readers", "writers"):
    for module in pkgutil.walk_packages([f"{fastprof.__path__[0]}/{part}"], f"fastprof.{part}."):
        __import__(module.name)
def peak():
    return 1024 * int(re.search("VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1])
before = peak()
assert main(sys.argv[1:]) == 0
print(peak() - before)
"""


def peak(*words) -> int:
    """The growth of a command's memory in bytes."""
    done = processes.python("-c", PEAK, *map(str, words), check=True, text=False)
    return int(done.stdout)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "net.sqlite"
    generate(path, 150_000, 1)
    # CPython's parser reports a syntax error where it runs out of memory, so modules are compiled
    # before memory is limited, as pip compiles them.
    assert compileall.compile_dir(Path(fastprof.__file__).parent, quiet=2)
    return path


@pytest.fixture(scope="module")
def lines(trace):
    assert run("parse", trace, "-o", trace.with_suffix(".dict")).returncode == 0
    return trace.with_suffix(".dict")


@pytest.fixture(scope="module")
def kineto(tmp_path_factory):
    path = tmp_path_factory.mktemp("kineto") / "trace.json"
    events = []
    for i in range(100_000):
        launch = {"args": {"correlation": i, "External id": i, "stream": 7, "device": 0}}
        common = {"ph": "X", "pid": 1, "tid": 2, "ts": 10 * i}
        op = {"External id": i, "Input Dims": [[i % 50, 4], [4, 2]], "Sequence number": i}
        events += [
            {**common, "cat": "cpu_op", "name": "aten::mm", "dur": 9, "args": op},
            {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 1, **launch},
            {**common, "cat": "kernel", "name": f"k{i % 11}", "pid": 0, "dur": 3.5, **launch},
        ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_the_estimate_of_an_export_is_near_what_it_takes(trace, tmp_path):
    with Database(trace) as database:
        expected = memory_estimate.memory_of_database(database, copies=False)
    for words in (["parse"], ["prof", "--csv"]):
        assert 0.8 < peak(*words, trace, "-o", tmp_path / "out") / expected < 2.5


def test_the_estimate_of_a_page_is_near_what_it_takes(trace, tmp_path):
    expected = memory_of_page(detect_trace(trace))
    assert 0.5 < peak("report", trace, "-o", tmp_path / "x.html") / expected < 2


def test_the_estimate_of_dict_lines_is_near_what_they_take(lines, tmp_path):
    expected = memory_estimate.memory_of_dict_lines(lines)
    assert 0.8 < peak("prof", "--csv", lines, "-o", tmp_path / "out") / expected < 3


def test_the_estimate_of_a_trace_of_torch_profiler_is_near_what_it_takes(kineto, tmp_path):
    expected = memory_estimate.memory_of_json(kineto, False)
    assert 0.8 < peak("prof", "--csv", kineto, "-o", tmp_path / "out") / expected < 5


def bounded(size: int):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


@pytest.mark.parametrize("kind", ["trace", "lines", "kineto"])
def test_a_file_that_is_clearly_too_large_is_refused_before_it_is_read(
    kind, request, tmp_path, monkeypatch
):
    file = request.getfixturevalue(kind)
    monkeypatch.setenv("FASTPROF_MEMORY", "5M")
    message = one_line(run("prof", file, "-o", tmp_path / "out"))
    assert "reading it takes about" in message
    assert "FASTPROF_MEMORY allows 5.0M" in message
    assert os.listdir(tmp_path) == []


# Before numpy is there, while modules are loaded, and while the file is read.
BOUNDS = [60, 100, 150, 200, 250, 280, 300, 320, 340]


@pytest.mark.parametrize("megabytes", some(BOUNDS, 3))
def test_memory_that_ends_anywhere_is_one_line_or_the_whole_report(megabytes, trace, tmp_path):
    done = run("parse", trace, "-o", tmp_path / "out", preexec_fn=bounded(megabytes * MB),
               env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # fmt: skip
    message = done.stderr.decode(errors="replace")
    assert done.returncode in (0, 1), message
    assert "Traceback" not in message
    if done.returncode:
        # numpy's OpenBLAS ends the process with a message of its own.
        assert "memory" in message.splitlines()[-1].lower()
        assert os.listdir(tmp_path) == []


def test_an_import_that_memory_ended_is_one_line(monkeypatch, capsys):
    def fail(arguments):
        try:
            raise ImportError("libopenblas.so: failed to map segment from shared object")
        except ImportError as error:
            raise ImportError("Error importing numpy: leave its\n source directory") from error

    monkeypatch.setattr("fastprof.cli.info.run", fail)
    assert main(["info", "net.sqlite"]) == 1
    assert capsys.readouterr().err == (
        "fastprof: not enough memory: libopenblas.so: failed to map segment from shared object\n"
    )


@pytest.mark.parametrize("kind", ["sqlite", "dict"])
def test_a_profile_is_freed_without_the_collector(tmp_path, kind):
    """A reference cycle would keep hundreds of megabytes until the next garbage collection."""
    path = tmp_path / "net.sqlite"
    generate(path, 100, 1)
    if kind == "dict":
        assert main(["parse", str(path), "-o", str(tmp_path / "net.dict")]) == 0
        path = tmp_path / "net.dict"
    gc.collect()
    gc.disable()
    try:
        profile = fastprof.open(path)
        names = [name for name in profile.names if len(profile.column(name)) == len(profile)]
        assert names == profile.names
        column = weakref.ref(profile.column("op"))
        assert profile.check() and profile.coverage and profile.kernels["op"].size == len(profile)
        del profile
        assert column() is None
    finally:
        gc.enable()
