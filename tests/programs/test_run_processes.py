"""`fastprof run` with programs that fork, spawn, die, are interrupted: `make test-programs`."""

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support import processes
from support.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.skipif(
    "FASTPROF_PROGRAMS" not in os.environ, reason="takes minutes: make test-programs"
)
TRAINING = """
import os, signal, sys, time, torch
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
def step():
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


class Run:
    """A program in a directory of its own, under `fastprof run`."""

    def __init__(self, folder):
        self.folder = folder

    def command(self, source, *options, training=TRAINING):
        path = self.folder / "program.py"
        path.write_text(training + textwrap.dedent(source))
        start = [sys.executable, "-m", "fastprof", "run", "--backend", "torch", "--steps", "3:5"]
        return [*start, *options, "--", sys.executable, str(path)]

    def __call__(self, source, *options, training=TRAINING):
        return processes.ran(self.command(source, *options, training=training), cwd=self.folder)

    def facts(self):
        (path,) = self.folder.glob("fastprof-runs/*/run.json")
        return json.loads(path.read_text())

    def steps(self):
        """The steps in each trace."""
        result = []
        for path in sorted(self.folder.glob("fastprof-runs/*/trace*.gz")):
            with gzip.open(path) as file:
                names = {str(event.get("name")) for event in json.load(file)["traceEvents"]}
            result.append(sorted(name for name in names if name.startswith("ProfilerStep#")))
        return result


BOTH = ["ProfilerStep#3", "ProfilerStep#4"]


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_a_program_that_forks_and_exits(run):
    done = run(
        """
        if os.fork() == 0:
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        for _ in range(8):
            step()
        sys.exit(3)
        """
    )
    assert (done.returncode, done.stdout) == (3, "5\n")
    assert run.steps() == [BOTH]


def test_a_program_that_dies_keeps_what_was_recorded(run):
    done = run(
        """
        for i in range(8):
            step()
            if i == 6:
                os.kill(os.getpid(), signal.SIGSEGV)
        """
    )
    assert done.returncode == -signal.SIGSEGV
    assert run.steps() == [BOTH] and run.facts()["exit_code"] == -signal.SIGSEGV


def test_a_program_that_fails_in_a_recorded_step(run):
    done = run(
        """
        for i in range(4):
            step()
        raise ArithmeticError("as it was asked to")
        """
    )
    assert done.returncode == 1 and "ArithmeticError: as it was asked to" in done.stderr
    assert "recorded 1 of 2 steps" in done.stderr and run.steps()


def test_ctrl_c_at_a_terminal_reaches_the_program_once(run):
    command = run.command(
        """
        seen = []
        try:
            for _ in range(8):
                step()
            print("ready", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            time.sleep(0.5)  # a second signal would end this
            print("caught", flush=True)
            sys.exit(9)
        """
    )
    ours, theirs = os.openpty()

    def take_terminal():
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    started = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=run.folder,
        preexec_fn=take_terminal,  # the terminal sends SIGINT to its foreground processes
    )  # fmt: skip
    os.close(theirs)
    assert started.stdout is not None and started.stdout.readline() == b"ready\n"
    os.write(ours, b"\x03")
    assert started.wait(PATIENCE) == 9
    assert started.stdout.read() == b"caught\n"
    started.stdout.close()
    os.close(ours)
    assert run.steps() == [BOTH] and run.facts()["exit_code"] == 9


def test_a_program_that_never_steps(run):
    done = run("print('done')")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "called no Optimizer.step" in done.stderr and not run.steps()


def test_a_program_that_ends_before_the_steps(run):
    done = run("step()\nstep()\n")
    assert "ended after 2 steps" in done.stderr and "use --steps 1:2" in done.stderr


def test_a_signal_to_the_command_records_a_running_program(run):
    ready = run.folder / "ready"
    command = run.command(
        """
        from pathlib import Path
        end = time.monotonic() + 60
        while time.monotonic() < end and not list(Path().glob("fastprof-runs/*/trace*")):
            step()
            time.sleep(0.01)
            Path("ready").touch()
        """,
        "--after",
        "1e6",
    )
    started = subprocess.Popen(command, cwd=run.folder, stderr=subprocess.DEVNULL)
    wait_for(ready.exists)
    started.send_signal(signal.SIGUSR2)
    assert started.wait(PATIENCE) == 0
    (steps,) = run.steps()
    assert len(steps) == 2


def test_isolated_pythons_are_reported(run):
    path = run.folder / "program.py"
    path.write_text("print('ran')")
    for option in ("-I", "-E", "-S"):
        words = ["run", "--backend", "torch", "--", sys.executable, option, path]
        done = processes.python("-m", "fastprof", *words, cwd=run.folder)
        assert done.stdout == "ran\n" and "(python -I, -E or -S)" in done.stderr


def test_another_python_without_fastprof_runs_the_program(run):
    (run.folder / "torch.py").write_text("answer = 42\n")
    other = Path(sys.base_prefix, "bin", "python3")
    done = run(
        f"""
        import os
        os.execv({str(other)!r}, ["python3", "-c", "import torch; print(torch.answer)"])
        """,
        training="",
    )
    assert (done.returncode, done.stdout) == (0, "42\n")
    assert "install it there" in done.stderr and "nothing recorded" in done.stderr


def test_spawned_ranks_have_a_trace_each(run):
    done = run(
        """
        def work(rank):
            torch.distributed.init_process_group(
                "gloo", init_method="file://" + os.path.abspath("store"), rank=rank, world_size=2
            )
            for _ in range(8):
                step()
            torch.distributed.barrier()
        if __name__ == "__main__":
            torch.multiprocessing.spawn(work, nprocs=2)
        """
    )
    assert done.returncode == 0, done.stderr
    assert run.steps() == [BOTH, BOTH] and "2 ranks: fastprof ranks" in done.stderr


def test_spawned_workers_of_a_data_loader_record_nothing(run):
    done = run(
        """
        class Data(torch.utils.data.Dataset):
            def __init__(self):
                self.change = torch.nn.Linear(4, 8).eval()
            def __len__(self):
                return 32
            def __getitem__(self, i):
                with torch.no_grad():
                    return self.change(torch.randn(4))
        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(
                Data(), batch_size=4, num_workers=1, multiprocessing_context="spawn"
            )
            for x in loader:
                net(x).sum().backward()
                optimizer.step()
        """
    )
    assert done.returncode == 0, done.stderr
    assert run.steps() == [BOTH]


def test_a_directory_that_is_read_only_is_an_error_before_the_program(run):
    (run.folder / "fastprof-runs").write_text("")  # root may write to any directory
    done = run("print('ran')")
    assert (done.returncode, done.stdout) == (1, "") and "set --runs" in done.stderr
