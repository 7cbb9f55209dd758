"""Programs of `fastprof run` on machines where something of ours fails: they notice nothing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fastprof.runs.facts import VARIABLE, Settings
from support import processes, torch_server
from support.hypothesis_profiles import IS_FULL
from support.waiting import PATIENCE

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")

PROGRAMS = Path(__file__).parent
CALLS, LINES = PROGRAMS / "failing_calls.py", PROGRAMS / "failing_lines.py"
LAUNCHER = PROGRAMS / "failing_launcher.py"
SETTINGS = {"first": 3, "last": 5}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = tmp_path / "run"
    made.mkdir()
    monkeypatch.setenv(VARIABLE, Settings(str(made), **SETTINGS).to_environment())
    return made


@pytest.fixture
def alone(monkeypatch):
    """What the program prints without fastprof."""
    with monkeypatch.context() as without:
        without.delenv(VARIABLE, raising=False)
        done = torch_server.run(CALLS, "0", "ENOSPC")
    assert done.returncode == 5 and not done.stderr
    return done.stdout


@pytest.mark.parametrize(("condition", "parts"), [((), 30), (("step > 1ns",), 90)])
def test_a_line_of_ours_that_fails_does_not_reach_the_program(tmp_path, condition, parts):
    parts = 1 if IS_FULL else parts
    words = (tmp_path / "run", str(parts), "0", *condition)
    done = torch_server.run(LINES, *words, timeout=10 * PATIENCE)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d{3,} lines\n", done.stdout), done.stdout


@pytest.fixture
def timed_folder(folder, monkeypatch):
    """Recorded by time, with threads that send signals."""
    timed = Settings(str(folder), 3, 5, after=0.0, seconds=60.0)
    monkeypatch.setenv(VARIABLE, timed.to_environment())
    return folder


def failing(folder, number, error):
    done = torch_server.run(CALLS, str(number), error)
    said = done.stderr.splitlines()
    left = [path for path in folder.iterdir() if not re.match(r"(status|trace)-", path.name)]
    assert done.returncode == 5 and not left, (number, done.stderr, left)
    assert re.fullmatch(r"calls: \d+", said[-1]), done.stderr
    assert len(said) <= 2 and all(line.startswith("fastprof: ") for line in said[:-1]), said
    for path in folder.iterdir():
        path.unlink()
    return done.stdout, int(said[-1].removeprefix("calls: "))


@pytest.fixture
def launched(plain, tmp_path):
    """Runs `fastprof run` with a fault; returns what it says, and its number of calls.

    Its program runs in a fork of a process with torch.
    """

    def launch(number, error):
        program = tmp_path / "train.py"
        program.write_text(torch_server.BEGIN + TRAINING.format(fault="pass", step=0))
        run = ["run", "--backend", "torch", "--steps", "3:5", "-o", tmp_path / "runs", "--"]
        words = torch_server.command(program)
        done = command(LAUNCHER, number, error, *run, *words, cwd=tmp_path)
        *said, last = done.stderr.splitlines()
        assert re.fullmatch(r"calls: \d+", last), done.stderr
        if "cannot be started" in done.stderr:
            assert done.returncode == 1 and not done.stdout and len(said) == 1
        else:
            assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
            assert "Traceback" not in done.stderr, (number, done.stderr)
        left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
        assert not [name for name in left if name.startswith((".", "status", "record"))], left
        return said, int(last.removeprefix("calls: "))

    return launch


def test_a_process_or_thread_that_the_launcher_cannot_start_is_no_harm(launched):
    """Nor is memory that cannot be mapped; only the program itself must be started."""
    said, n_calls = launched(0, "ENOMEM")
    assert n_calls > 10 and "kept in" in said[-1]
    numbers = range(1, n_calls + 1) if IS_FULL else (1, 2, 3, 4, 5, n_calls - 1)
    failed = [
        number
        for number in numbers
        if "cannot be started" in launched(number, ("EAGAIN", "ENOMEM")[number % 2])[0][0]
    ]
    assert len(failed) == 1  # the program


@pytest.mark.parametrize("room", [0, 1 << 24, 1 << 28] if IS_FULL else [1 << 24])
def test_a_launcher_without_memory_says_what_is_lost(launched, room):
    said, _ = launched(room, "SPACE")
    ours = [line for line in said if line.startswith("fastprof: ")]
    assert any("not enough memory" in line or "kept in" in line for line in ours), said


def test_a_call_of_the_system_that_fails_does_not_reach_the_program(folder, alone):
    _, n_calls = failing(folder, 0, "ENOSPC")
    assert n_calls > 10
    errors = ("ENOSPC", "MEMORY", "EROFS", "ENOENT", "EDQUOT")
    for number in range(1, n_calls + 1, 1 if IS_FULL else 5):
        printed, _ = failing(folder, number, errors[number % len(errors)])
        assert printed == alone, number


def test_a_thread_that_cannot_start_does_not_reach_the_program(timed_folder, alone):
    _, n_calls = failing(timed_folder, 0, "EAGAIN")
    for number in range(1, n_calls + 1, 1 if IS_FULL else 6):
        printed, _ = failing(timed_folder, number, "EAGAIN")
        assert printed == alone, number


def test_memory_that_cannot_be_mapped_does_not_reach_the_program(folder, alone):
    _, n_parts = failing(folder, 0, "SPACE")
    assert n_parts > 5
    for number in range(1, n_parts + 1, 1 if IS_FULL else 3):
        printed, _ = failing(folder, number, "SPACE")
        assert printed == alone, number


TRAINING = """
import json, os, resource, shutil, sys, torch
def fail(folder):
    {fault}
torch.manual_seed(0)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(net.parameters())
for i in range(8):
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    if i == {step} and "FASTPROF_RUN" in os.environ:
        fail(json.loads(os.environ["FASTPROF_RUN"])["directory"])
print(sum(each.double().sum().item() for each in net.parameters()))
sys.exit(5)
"""
FILL = """
    with open(os.path.join(folder, "..", "..", "other"), "wb", buffering=0) as file:
        try:
            while file.write(bytes(512)) == 512: pass
        except OSError: pass
"""
FAULTS = {
    "removed": ("shutil.rmtree(folder)", "was removed"),
    "a file": ("shutil.rmtree(folder); open(folder, 'w').close()", "was removed"),
    "quota": (
        "sys.dont_write_bytecode = True; "  # Python would cut the files of modules off
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))",
        "larger than the limit",
    ),
    "full": (FILL, "no space left on the disk"),
}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB; needs the right to mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(words, check=False).returncode:
        pytest.skip("no right to mount a file system")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def command(*words, cwd, **options):
    words = [sys.executable, *map(str, words)]
    return processes.ran(words, cwd=cwd, **options)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What the program does without fastprof."""
    program = tmp_path_factory.mktemp("plain") / "train.py"
    program.write_text(TRAINING.format(fault="pass", step=0))
    done = torch_server.run(program)
    assert done.returncode == 5 and not done.stderr
    return done


@pytest.mark.parametrize("step", [0, 3] if IS_FULL else [3])
@pytest.mark.parametrize("name", FAULTS)
def test_a_run_that_cannot_be_kept_leaves_the_program_alone(name, step, plain, tmp_path, request):
    fault, words = FAULTS[name]
    disk = request.getfixturevalue("small_disk") if name == "full" else tmp_path
    program = tmp_path / "train.py"
    program.write_text(torch_server.BEGIN + TRAINING.format(fault=fault, step=step))
    run = ["-m", "fastprof", "run", "--backend", "torch", "--steps", "3:5", "-o", disk / "runs"]
    done = command(*run, "--", *torch_server.command(program), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    said = done.stderr.splitlines()
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(said) <= 3 and all(line.startswith("fastprof: ") for line in said), said
    left = [path.name for path in (disk / "runs").rglob("*") if path.is_file()]
    assert not [name for name in left if name.startswith((".", "status", "record"))], left
