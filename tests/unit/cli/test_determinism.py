"""The same input gives the same output, byte by byte, with any settings of the machine."""

import gzip
import json
import os
from itertools import product
from pathlib import Path

import pytest
from bench.generate import generate

from support import processes, rank_files
from support.commands import command, run
from support.hypothesis_profiles import IS_FULL, some
from support.nvprof_files import NvprofFile
from support.real_data import data_dir
from unit.cli.outputs import WORDS, outputs

pytest.importorskip("pyarrow")
if not hasattr(os, "sched_setaffinity"):
    pytest.skip("cores cannot be chosen on this system", allow_module_level=True)

MACHINES = {
    "another hash seed": {"PYTHONHASHSEED": "1"},
    "a third hash seed": {"PYTHONHASHSEED": "4242"},
    "one core": {"cores": 1, "PYTHONHASHSEED": "7"},
    "SQLite": {"FASTPROF_SCAN": "sqlite"},
    "SQLite and one core": {"FASTPROF_SCAN": "sqlite", "cores": 1},
}
# The fast profile: another hash seed, another number of cores, and both ways to read a database.
FAST_CASES = [("made", "SQLite and one core"), ("real_files", "one core")]
CASES = [*product(("made", "real_files"), MACHINES)] if IS_FULL else FAST_CASES
# Workers and hash seed of a batch.
BATCHES = [("1", "0"), ("2", "1"), ("3", "77")] if IS_FULL else [("1", "0"), ("2", "77")]


def nvprof(path: Path) -> Path:
    file = NvprofFile()
    for i in range(300):
        file.push_pop(10 * i, 10 * i + 9, f"aten::mul, seq = {i % 50}", tid=7 + i % 3)
        file.launch(10 * i + 1, 10 * i + 2, corr=i, tid=7 + i % 3)
        file.kernel(10 * i + 3, 10 * i + 8, corr=i, name=f"k{i % 13}")
    return file.write(path)


def kineto(path: Path) -> Path:
    events = []
    for i in range(500):
        common = {"ph": "X", "pid": 1, "tid": 2 + i % 3, "ts": 10 * i}
        launch = {"args": {"correlation": i}}
        op = {"Input Dims": [[i % 7, 4], [4, 2]], "Sequence number": i}
        events += [
            {**common, "cat": "cpu_op", "name": f"aten::mm{i % 5}", "dur": 9, "args": op},
            {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 1, **launch},
            {**common, "cat": "kernel", "name": f"k{i % 11}", "pid": 0, "dur": 3.5, **launch},
        ]
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One file of each format."""
    folder = tmp_path_factory.mktemp("made")
    generate(folder / "net.sqlite", 4000 if IS_FULL else 1000, 3, 2)
    assert run("parse", folder / "net.sqlite", "-o", folder / "net.dict").returncode == 0
    return [
        folder / "net.sqlite",
        folder / "net.dict",
        nvprof(folder / "net.sql"),
        kineto(folder / "trace.json.gz"),
    ]


@pytest.fixture(scope="module")
def real_files():
    directory = data_dir()
    if directory is None:
        pytest.skip("no real traces: set FASTPROF_DATA to their directory")
    names = [
        "nsys/emit_nvtx_2gpu_nsys2026.sqlite",
        "nsys/cudagraph_a100_nsys2024.sqlite",
        "pyprof/lm_v100_nvprof.sql",
        "kineto/dlrm_rank0.json.gz",
        "nvprof/nccl_4gpu.nvvp",
        "kineto/resnet18_mi300_full.json.gz",
    ]
    return [directory / name for name in some(names, 3)]


@pytest.fixture(scope="module")
def files(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def expected(files, tmp_path_factory):
    result = outputs(files, tmp_path_factory.mktemp("expected") / "out", PYTHONHASHSEED="0")
    n_dict = sum(file.suffix == ".dict" for file in files)
    assert len(result) == len(files) * (len(WORDS) + 1) - 3 * n_dict
    return result


@pytest.mark.parametrize(("files", "machine"), CASES, indirect=["files"])
def test_outputs_are_the_same(machine, files, expected, tmp_path):
    settings = MACHINES[machine]
    result = outputs(files, tmp_path / "out", **settings)
    differ = {name for name in expected if result.get(name) != expected[name]}
    if "FASTPROF_SCAN" in settings:  # shown by info
        differ = {name for name in differ if not name.endswith(".info")}
    assert differ == set()


def test_a_batch_is_the_same_in_any_order_of_work(tmp_path):
    rank_files.run(tmp_path / "run", 3)
    result = set()
    for jobs, seed in BATCHES:
        env = {**os.environ, "PYTHONHASHSEED": seed}
        words = command("batch", tmp_path / "run", "-j", jobs, "--no-progress")
        done = processes.ran(words, env=env, text=False)
        assert done.returncode == 0
        result.add(done.stdout)
    assert len(result) == 1
