"""`fastprof run --backend rocprof` with a stand-in for rocprofv3 that runs the program."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.errors import BadInputError
from fastprof.runs.rocprof import find_rocprof, name_traces, no_trace, rocprof_command
from support import processes, torch_server
from support.rocprof_tool.rocprofv3 import HELP

RUN = [sys.executable, "-m", "fastprof", "run", "--backend", "rocprof"]
TOOL = Path(__file__).parents[2] / "support" / "rocprof_tool"
TRAINING = """
import os, sys
import torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
def step():
    optimizer.zero_grad()
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
for i in range(6):
    step()
"""
LOADED = """
import ctypes, os
ctypes.CDLL(os.environ["STAND_IN_LIBRARY"], ctypes.RTLD_GLOBAL)
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The stand-in as `rocprofv3` of the environment, without its library of roctx."""
    root = TOOL.parents[2]
    path = tmp_path / "rocprofv3"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path[:0] = [{str(root)!r}, {str(root / 'tests')!r}]\n"
        "from support.rocprof_tool.rocprofv3 import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("FASTPROF_ROCPROF", str(path))
    return path


@pytest.fixture
def run(tool, tmp_path, monkeypatch):
    """A function that runs a program of PyTorch under the stand-in."""
    pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None:
        pytest.skip("no C compiler for the stand-in's library of roctx")
    library = tmp_path / "libroctx-stand-in.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(TOOL / "roctx.c")]
    subprocess.run(words, check=True)
    monkeypatch.setenv("STAND_IN_LIBRARY", str(library))

    def run_program(*options, source=TRAINING):
        (tmp_path / "program.py").write_text(source)
        return processes.ran([*RUN, *options, "program.py"], cwd=tmp_path, input="in")

    return run_program


@pytest.fixture
def run_forked(run, tmp_path):
    """As `run`, in a fork of a process that has imported torch, which loads the library itself."""

    def run_program(*options, before=""):
        (tmp_path / "program.py").write_text(f"{LOADED}{before}{torch_server.BEGIN}{TRAINING}")
        words = [*RUN, *options, "--", *torch_server.command("program.py")]
        return processes.ran(words, cwd=tmp_path)

    return run_program


def only_run(folder):
    (facts,) = folder.glob("fastprof-runs/*/run.json")
    return facts.parent, json.loads(facts.read_text())


def test_steps_layers_and_calls_are_recorded_in_a_database(run, tmp_path):
    ending = "print('trained', sys.stdin.read()); sys.exit(3)"
    done = run("--steps", "2:4", source=TRAINING + ending)
    assert (done.returncode, done.stdout) == (3, "trained in\n"), done.stderr
    folder, facts = only_run(tmp_path)
    assert facts["exit_code"] == 3
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "run.json", "trace.db"]
    assert Path(facts["recorder"][0]).name == "rocprofv3"
    assert facts["recorder"][-3:] == ["--selected-regions", "--output-format", "rocpd"]
    profile = fastprof.open(folder / "trace.db")
    names = profile.ranges.name.array().tolist()
    assert [name for name in names if name.startswith("ProfilerStep")] == [
        "ProfilerStep#2", "ProfilerStep#3",
    ]  # fmt: skip
    assert "2 steps (ProfilerStep#2 to #3)" in done.stderr
    layers = {layer for row in profile.rows() for layer in row["layer"]}
    assert {"0", "2"} <= layers
    assert {"linear", "relu"} <= {row["op"] for row in profile.rows()}


def test_time_instead_of_steps_is_recorded_too(run_forked, tmp_path):
    done = run_forked("--after", "0", "--for", "60")
    assert done.returncode == 0, done.stderr
    assert (only_run(tmp_path)[0] / "trace.db").exists(), done.stderr


def test_a_recording_that_leaves_no_file_is_told(run_forked, tmp_path):
    done = run_forked("--steps", "2:4", before="del os.environ['STAND_IN_LOG']\n")
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("fastprof-runs/*/trace*"))
    assert "rocprofv3 wrote no trace of the recorded process (it wrote no file)" in done.stderr


def test_no_rocprofv3_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FASTPROF_ROCPROF", raising=False)
    assert find_rocprof() is None
    done = processes.ran([*RUN, "x.py"])
    assert done.returncode == 2
    assert "--backend rocprof: no rocprofv3 on the PATH" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pytorch", "autograd-nvtx"], "--pytorch: an option of nsys"),
        (["--when", "step > 2 * median", "--times", "2"], "--times: rocprofv3 writes one file"),
    ],
)
def test_options_of_other_backends_are_errors(tool, options, message):
    done = processes.ran([*RUN, *options, "x.py"])
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_program_that_is_not_there_is_an_error(tool, tmp_path):
    done = processes.ran([*RUN, "--", "./none"], cwd=tmp_path)
    assert done.returncode == 1
    assert "./none: cannot be started: No such file" in done.stderr


def test_a_version_gets_the_options_that_it_has(tool, monkeypatch):
    words = rocprof_command(str(tool))
    assert words[1:] == [
        "--kernel-trace", "--hip-runtime-trace", "--marker-trace", "--memory-copy-trace",
        "--memory-allocation-trace", "--rccl-trace", "--selected-regions", "--output-format",
        "rocpd",
    ]  # fmt: skip
    older = HELP.replace(",rocpd", "").replace("[--rccl-trace] ", "")
    monkeypatch.setenv("STAND_IN_HELP", older)
    words = rocprof_command(str(tool))
    assert (words[-1], "--rccl-trace" in words, "--marker-trace" in words) == ("json", False, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HELP.replace("--selected-regions", ""), "has no option --selected-regions, which records"),
        ("/opt/rocm/lib/x.so: cannot open", r"has no option .*: /opt/rocm/lib/x.so: cannot open"),
        (HELP.replace("rocpd", "").replace("json", ""), "writes neither rocpd nor JSON"),
    ],
)
def test_a_version_that_cannot_record_steps_is_an_error(tool, monkeypatch, text, message):
    monkeypatch.setenv("STAND_IN_HELP", text)
    with pytest.raises(BadInputError, match=message):
        rocprof_command(str(tool))


def test_the_files_of_recorded_processes_are_named_by_rank(tmp_path):
    begun, empty = {"has_begun": True, "n_steps": 3}, {"has_begun": False, "n_steps": 0}
    reports = [
        {"pid": 11, "rank": 0, "world": 2, "recordings": [begun]},
        {"pid": 12, "rank": 1, "world": 2, "recordings": [begun]},
        {"pid": 13, "rank": 0, "world": 2, "recordings": [empty]},
        {"pid": 14, "rank": 0, "world": 2, "recordings": []},
    ]
    for pid in (11, 12, 13):
        (tmp_path / f"trace.{pid}_results.db").touch()
    name_traces(tmp_path, reports)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["trace.13_results.db", "trace.rank0.db", "trace.rank1.db"]
    assert "it wrote trace.13_results.db" in no_trace(tmp_path)
