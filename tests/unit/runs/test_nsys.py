"""`fastprof run` with a real Nsight Systems; skipped without one that records and exports."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

import fastprof
from fastprof.model.markers import Kind
from support.waiting import PATIENCE, wait_for

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

pytestmark = pytest.mark.usefixtures("real_nsys")

RUN = [sys.executable, "-m", "fastprof", "run", "--steps", "2:4"]
TRAINING = """
import os, signal, sys, time
import torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
def step():
    optimizer.zero_grad()
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def program(tmp_path):
    def write(source, head=TRAINING):
        path = tmp_path / "program.py"
        path.write_text(head + source)
        return path

    return write


@pytest.fixture
def run(tmp_path, program):
    def run(source, backend="nsys", words=(sys.executable,), asked=(), head=TRAINING, **options):
        path = program(source, head)
        options = {"cwd": tmp_path, "capture_output": True, "text": True, **options}
        return subprocess.run(
            [*RUN, *asked, "--backend", backend, "--", *words, str(path)],
            check=False,
            timeout=PATIENCE,
            **options,
        )

    return run


def only_run(tmp_path):
    (facts,) = tmp_path.glob("fastprof-runs/*/run.json")
    return facts.parent, json.loads(facts.read_text())


def annotated(path):
    """The steps of a trace, and its annotated calls with their layers and counts."""
    profile = fastprof.open(path)
    assert profile.warnings == []
    ranges = profile.ranges
    assert set(ranges.threads.pid) - {-1}
    parents, labels = ranges.parent.tolist(), ranges.label.tolist()

    def layers(row):
        while row >= 0:
            meaning = ranges.meanings[labels[row]]
            if meaning.kind == Kind.LAYER:
                yield meaning.name
            row = parents[row]

    calls = Counter(
        (*layers(row), ranges.meanings[label].label)
        for row, label in enumerate(labels)
        if ranges.meanings[label].kind in (Kind.ARGUMENT, Kind.LAYER)
    )
    return profile.about.steps.number.tolist(), calls


STEPS = "for i in range(6):\n    step()\n"


def test_nsys_and_torch_record_the_same_steps_layers_and_calls(run, tmp_path):
    result = []
    for backend, name in (("nsys", "trace.sqlite"), ("torch", "trace.json.gz")):
        done = run(STEPS + "print('trained', sys.stdin.read())", backend, input="in")
        assert (done.returncode, done.stdout) == (0, "trained in\n"), done.stderr
        assert "2 steps (ProfilerStep#2 to #3)" in done.stderr
        (path,) = tmp_path.glob(f"fastprof-runs/*/{name}")
        result.append(annotated(path))
    assert result[0] == result[1]
    steps, calls = result[0]
    assert steps == [2, 3]
    assert {call[-2:] for call in calls if call[-1].startswith("layer:")} >= {("0", "layer:0")}


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(3)", 3),
        ("os._exit(4)", 4),
        ("1 / 0", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGABRT)", 128 + signal.SIGABRT),
    ],
)
def test_the_exit_code_is_that_of_the_program(run, tmp_path, end, code):
    done = run(f"{STEPS}print('end', flush=True)\n{end}")
    assert (done.returncode, done.stdout) == (code, "end\n"), done.stderr
    assert ("ZeroDivisionError" in done.stderr) == (code == 1)
    folder, facts = only_run(tmp_path)
    assert facts["exit_code"] == code
    # nsys may lose what a killed program has recorded just before.
    is_lost = "the trace has no ranges" in done.stderr
    assert not is_lost or code > 128
    assert is_lost or annotated(folder / "trace.sqlite")[0] == [2, 3]


def test_a_program_that_ends_within_the_recorded_steps(run, tmp_path):
    done = run("for i in range(3):\n    step()\n")
    assert done.returncode == 0
    assert "recorded 1 of 2 steps: the program ended in step 3" in done.stderr
    assert 2 in annotated(only_run(tmp_path)[0] / "trace.sqlite")[0]


def test_a_program_without_steps(run, tmp_path):
    done = run("print('done')")
    assert (done.returncode, done.stdout) == (0, "done\n")
    (line,) = done.stderr.splitlines()
    assert "the program called no Optimizer.step" in line
    assert not list(only_run(tmp_path)[0].glob("trace*"))


def test_a_program_without_steps_is_recorded_by_time(run, tmp_path):
    done = run(
        "end = time.monotonic() + 6\nwhile time.monotonic() < end:\n    torch.ones(2).relu()\n"
        "    time.sleep(0.01)",
        head="import time, torch\n",
        asked=["--after", "0.5", "--for", "0.5"],
    )
    assert done.returncode == 0 and "nothing recorded" not in done.stderr, done.stderr
    assert any(
        "'op': 'relu'" in call[0] for call in annotated(only_run(tmp_path)[0] / "trace.sqlite")[1]
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_signals_reach_the_program(program, tmp_path, name):
    path = program(
        f"{STEPS}"
        f"signal.signal(signal.{name}, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    command = subprocess.Popen(
        [*RUN, "--backend", "nsys", str(path)], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert command.stdout is not None and command.stdout.readline() == b"ready\n"
    command.send_signal(getattr(signal, name))
    assert command.wait(PATIENCE) == 7
    command.stdout.close()
    assert annotated(only_run(tmp_path)[0] / "trace.sqlite")[0] == [2, 3]


def test_sigusr2_records_now(program, tmp_path):
    path = program(
        "print('ready', flush=True)\n"
        "while not os.path.exists('stop'):\n"
        "    step()\n"
        "    time.sleep(0.01)\n"
    )
    command = subprocess.Popen(
        [*RUN, "--steps", "1000000:1000002", "--backend", "nsys", str(path)], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert command.stdout is not None and command.stdout.readline() == b"ready\n"
    command.send_signal(signal.SIGUSR2)
    wait_for(lambda: list(tmp_path.glob("fastprof-runs/*/status-*.json")))  # recorded
    (tmp_path / "stop").touch()
    _, err = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, err
    assert len(annotated(only_run(tmp_path)[0] / "trace.sqlite")[0]) == 2


RANKS = """
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(net)
for i in range(6):
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    time.sleep(0.2)
torch.distributed.barrier()
os._exit(0)
"""


def test_ranks_are_recorded_in_one_trace(run, tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = run(RANKS, words=[sys.executable, *torchrun], env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    folder, facts = only_run(tmp_path)
    ranks = [process for process in facts["processes"] if process["recordings"]]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert set(fastprof.open(folder / "trace.sqlite").ranges.pid) == {rank["pid"] for rank in ranks}
