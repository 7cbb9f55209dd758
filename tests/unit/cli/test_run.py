"""`fastprof run`: the program notices nothing, and its run is kept and found again."""

import gzip
import json
import os
import signal
import stat
import subprocess
import sys

import pytest

from fastprof._system import nvidia
from fastprof.cli import main
from fastprof.errors import BadInputError
from fastprof.runs.collect import collect
from fastprof.runs.directory import all_runs, new_directory, resolved, traces_of, write_facts
from fastprof.runs.facts import VARIABLE, Settings, from_environment
from fastprof.runs.launch import program_name, python_command
from fastprof.runs.nsys import nsys_command
from fastprof.runs.problems import problems_of
from support import commands, gloo_crashes, processes, torch_server
from support.hypothesis_profiles import IS_FULL, some
from support.waiting import PATIENCE

RUN = [sys.executable, "-m", "fastprof", "run"]
SETTINGS = Settings("/none", 10, 13)


def run(*words, cwd, **options):
    options = {"capture_output": True, "text": True, "timeout": PATIENCE, **options}
    return subprocess.run([*RUN, *map(str, words)], cwd=cwd, check=False, **options)


def facts_in(folder):
    (result,) = (folder / "fastprof-runs").glob("*/run.json")
    return result.parent, json.loads(result.read_text())


@pytest.fixture
def program(tmp_path):
    def write(source, name="program.py"):
        path = tmp_path / name
        path.write_text(source)
        return path

    return write


SHOWS = """
import sys, os, warnings, json
warnings.warn("careful")
json.dump({"argv": sys.argv, "file": __file__, "name": __name__, "path": sys.path,
           "input": sys.stdin.read(), "flags": sys.flags.optimize, "spec": repr(__spec__),
           "fastprof": [name for name in sys.modules if name.startswith("fastprof")]}, sys.stdout)
sys.exit(3)
"""


def test_a_program_without_torch_sees_the_same(program, tmp_path):
    path = program(SHOWS)
    alone = processes.python(path, "--steps", "5", "a b", cwd=tmp_path, input="in")
    done = run(path, "--steps", "5", "a b", cwd=tmp_path, input="in")
    assert done.returncode == alone.returncode == 3
    assert json.loads(done.stdout) == json.loads(alone.stdout)
    own = [line for line in done.stderr.splitlines(True) if not line.startswith("fastprof: ")]
    assert "".join(own) == alone.stderr


def test_the_sitecustomize_of_the_user_runs_too(program, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins\nbuiltins.seen = __file__\n")
    path = program("import sys; print(seen, sys.modules['sitecustomize'].__file__)")
    environment = {**os.environ, "PYTHONPATH": str(own)}
    done = run(path, cwd=tmp_path, env=environment)
    assert done.stdout.split() == [str(own / "sitecustomize.py")] * 2


def test_a_signal_that_ends_the_program_ends_the_command(program, tmp_path):
    path = program("import os, signal; os.kill(os.getpid(), signal.SIGABRT)")
    done = run("--", sys.executable, path, cwd=tmp_path)
    assert done.returncode == -signal.SIGABRT
    assert facts_in(tmp_path)[1]["exit_code"] == -signal.SIGABRT


@pytest.mark.parametrize("name", some(["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"], 3))
def test_signals_reach_the_program(program, tmp_path, name):
    path = program(
        "import signal, sys, time\n"
        f"signal.signal(signal.{name}, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = subprocess.Popen(
        [*RUN, path], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert command.stdout is not None and command.stdout.readline() == b"ready\n"
    command.send_signal(getattr(signal, name))
    assert command.wait(PATIENCE) == 7
    command.stdout.close()


def test_sigusr2_becomes_a_request_in_the_directory(program, tmp_path):
    path = program(
        "import json, os, pathlib, time\n"
        "now = pathlib.Path(json.loads(os.environ['FASTPROF_RUN'])['directory'], 'record-now')\n"
        "print('ready', flush=True)\n"
        "while not now.exists() or not now.read_text():\n"
        "    time.sleep(0.01)\n"
    )
    command = subprocess.Popen(
        [*RUN, path], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert command.stdout is not None and command.stdout.readline() == b"ready\n"
    command.send_signal(signal.SIGUSR2)
    assert command.wait(PATIENCE) == 0
    command.stdout.close()
    assert not list(facts_in(tmp_path)[0].glob("record-now"))


AGAIN = """
import glob, json, os, time, torch
folder = json.loads(os.environ["FASTPROF_RUN"])["directory"]
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(net.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
n_traces, end = 0, time.monotonic() + 60
while n_traces < 2 and time.monotonic() < end:
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    scheduler.step()
    time.sleep(0.01)
    if len(glob.glob(folder + "/trace-*.json")) > n_traces:
        n_traces += 1
        print("recorded", flush=True)
"""


def test_sigusr2_records_again_after_everything_was_undone(program, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
    words = torch_server.command(program(torch_server.BEGIN + AGAIN))
    command = subprocess.Popen(
        [*RUN, "--backend", "torch", "--steps", "3:5", "--", *words], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert command.stdout is not None and command.stdout.readline() == b"recorded\n"
    command.send_signal(signal.SIGUSR2)
    assert command.stdout.readline() == b"recorded\n"
    assert command.wait(PATIENCE) == 0
    command.stdout.close()
    folder, _ = facts_in(tmp_path)
    assert sorted(path.name for path in folder.glob("trace*")) == [
        "trace-2.json.gz",
        "trace.json.gz",
    ]


TRAINING = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for i in range(8):
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
print("trained", __name__, __file__)
"""


def test_a_run_is_recorded_listed_and_taken_by_other_commands(program, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
    path = program(TRAINING, "train.py")
    done = run("--backend", "torch", "--steps", "2:4", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"trained __main__ {path}\n"
    folder, facts = facts_in(tmp_path)
    assert "2 steps (ProfilerStep#2 to #3)" in done.stderr
    assert done.stderr.endswith(f"kept in fastprof-runs/{folder.name}/report.html\n")
    assert facts["command"] == [sys.executable, str(path)] and facts["exit_code"] == 0
    (process,) = facts["processes"]
    assert process["steps"] == 4 and process["versions"]["torch"]
    assert {path.name for path in folder.iterdir()} >= {"run.json", "trace.json.gz"}
    with gzip.open(folder / "trace.json.gz") as file:
        names = {event.get("name") for event in json.load(file)["traceEvents"]}
    assert names >= {"layer:0", "layer:1", "ProfilerStep#2", "ProfilerStep#3"}
    listed = commands.run("run", "--list", cwd=tmp_path).stdout.decode().splitlines()
    assert listed[1].split()[0] == folder.name and "train.py" in listed[1]
    shown = commands.run("info", folder.name, cwd=tmp_path)
    assert shown.returncode == 0 and b"torch.profiler" in shown.stdout


@pytest.mark.skipif(not IS_FULL, reason="takes 10 s: make test-all")
def test_two_ranks_write_a_trace_each(program, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
    if not torch.distributed.is_available():
        pytest.skip("this torch was built without torch.distributed")
    path = program(
        "import torch\n"
        "torch.distributed.init_process_group('gloo')\n"
        "net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())\n"
        "model = torch.nn.parallel.DistributedDataParallel(net)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for i in range(6):\n"
        "    model(torch.randn(4, 8)).sum().backward()\n"
        "    optimizer.step()\n"
        "torch.distributed.barrier()\n"
        "del model, optimizer\n"
        "torch.distributed.destroy_process_group()\n"
    )
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = ["--backend", "torch", "--steps", "2:4", *launcher, path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root, done = gloo_crashes.repeated(
        lambda folder: run(*words, cwd=folder, env=environment), lambda each: each.stderr, tmp_path
    )
    assert done.returncode == 0, done.stderr
    folder, facts = facts_in(root)
    assert sorted(path.name for path in folder.glob("trace*")) == [
        "trace.rank0.json.gz",
        "trace.rank1.json.gz",
    ]
    assert [each["rank"] for each in facts["processes"] if each["recordings"]] == [0, 1]


# Without a program.


def test_the_settings_reach_the_program(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert from_environment() is None
    asked = Settings("/somewhere", 1, 2, 0.5, 2.5, "nvtx", True, "call")
    monkeypatch.setenv(VARIABLE, asked.to_environment())
    assert from_environment() == asked


def test_scripts_and_modules_run_with_this_python(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    assert python_command([str(script), "-x"]) == [sys.executable, str(script), "-x"]
    assert python_command(["-m", "pkg.train"]) == [sys.executable, "-m", "pkg.train"]
    assert python_command(["torchrun", "train.py"]) == ["torchrun", "train.py"]
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert python_command([str(script)]) == [str(script)]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "dir/train.py", "--x"], "train"),
        (["python", "-m", "pkg.train"], "pkg.train"),
        (["torchrun", "--nproc-per-node", "2", "train.py", "other.py"], "train"),
        (["python", "-m", "torch.distributed.run", "--standalone", "dir/train.py"], "train"),
        (["/bin/serve", "model"], "serve"),
    ],
)
def test_a_run_is_named_after_its_program(command, name):
    assert program_name(command) == name


def test_runs_of_the_same_second_have_directories_of_their_own(tmp_path):
    made = [new_directory("a b/..", tmp_path / "runs") for _ in range(3)]
    assert len(set(made)) == 3 and all(each.parent == tmp_path / "runs" for each in made)
    for each in made:
        write_facts(each, {"started": each.name})
    (made[0] / "run.json").write_text("{")
    runs, problems = all_runs(tmp_path / "runs")
    assert {each.path for each in runs} == set(made[1:])
    assert len(problems) == 1 and str(made[0]) in problems[0]


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(BadInputError, match="cannot create the directory of the run"):
        new_directory("train", tmp_path / "runs")


def test_a_name_stands_for_the_trace_of_its_run(tmp_path):
    home = tmp_path / "runs"
    one, two = new_directory("one", home), new_directory("two", home)
    of_one = ["trace.json.gz", "trace-2.json.gz"]  # two recordings
    for each, names in ((one, of_one), (two, [f"trace.rank{rank}.json" for rank in range(11)])):
        write_facts(each, {})
        for name in names:
            (each / name).write_text("")
    assert resolved(one.name, home) == str(one / "trace.json.gz")
    assert resolved(two.name, home) == str(two)
    assert resolved(two.name, home, one=True) == str(two / "trace.rank0.json")
    assert [each.name for each in traces_of(two)][9:] == ["trace.rank9.json", "trace.rank10.json"]
    assert resolved("other.sqlite", home) == "other.sqlite"


def test_reports_and_traces_of_processes_are_collected(tmp_path):
    def report(pid, rank, world, *traces):
        for name in traces:
            (tmp_path / name).write_text("{}")
        recordings = [{"path": str(tmp_path / trace), "first": 1, "n_steps": 1} for trace in traces]
        text = {"pid": pid, "rank": rank, "world": world, "steps": 4, "recordings": recordings}
        (tmp_path / f"status-{pid}.json").write_text(json.dumps(text))

    report(7, 1, 2, "trace-7.rank1.json")
    report(8, 0, 2, "trace-8.rank0.json", "trace-8-2.rank0.json")
    report(9, 0, 1, "trace-9.json")
    result = collect(tmp_path)
    assert [each["pid"] for each in result] == [8, 9, 7]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("trace-2.rank0.json.gz", "trace.json.gz"),
        *("trace.rank0.json.gz", "trace.rank1.json.gz"),
    ]


def process(**facts):
    empty = {"problem": None, "notes": [], "recordings": [], "training_calls": 0, "is_over": True}
    return {"pid": 1, "steps": 0, "by": None, **empty, **facts}


def test_a_recording_by_time_without_steps_is_no_problem():
    recording = {"path": None, "first": 0, "n_steps": 0, "has_begun": True}  # under nsys
    timed = Settings("/none", 10, 13, after=1.0, seconds=1.0)
    assert problems_of([process(recordings=[recording])], timed) == []


PARTLY = {"first": 10, "n_steps": 1, "is_stopped": False}


@pytest.mark.parametrize(
    ("processes", "words"),
    [
        ([], "python -I, -E or -S"),
        ([], "no Python of the program imported torch"),
        ([process()], "no Optimizer.step and no module"),
        ([process(training_calls=25)], "modules in training mode 25 times, but no Optimizer.step"),
        ([process(training_calls=25)], "--step-by call --steps 12:13"),
        ([process(steps=6, is_over=False)], "or replaced itself by another program (os.exec)"),
        ([process(steps=6)], "use --steps 3:4"),
        ([process(steps=9, recordings=[{"first": 10, "n_steps": 0}])], "use --steps 4:5"),
        ([process(problem="CaptureError: is already active")], "recording failed"),
        (
            [process(notes=["stopped"], by="call", recordings=[PARTLY | {"is_stopped": True}])],
            "process 1: stopped",
        ),
        (
            [process(steps=11, by="optimizer", recordings=[PARTLY])],
            "recorded 1 of 3 steps: the program ended in step 11",
        ),
    ],
)
def test_a_run_says_why_it_recorded_less(processes, words):
    (line,) = problems_of(processes, SETTINGS)
    assert words in line


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """An nsys with some help text; a GPU or none."""
    path = tmp_path / "nsys"

    def make(text, has_gpu):
        path.write_text(f"#!/bin/sh\necho '{text}'\n")
        path.chmod(0o755)
        monkeypatch.setattr(nvidia, "_DEVICES", (str(path),) if has_gpu else ())
        return str(path)

    return make


def test_nsys_gets_the_options_that_its_version_has(tool):
    both = "--python-backtrace= --pytorch="
    words = nsys_command(tool(both, has_gpu=True), "autograd-nvtx")
    assert {"--trace=cuda,nvtx", "--capture-range=cudaProfilerApi"} < set(words)
    assert "--pytorch=autograd-nvtx" in words
    words = nsys_command(tool(both, has_gpu=True), None)
    assert not [word for word in words if "pytorch" in word or "python" in word]
    words = nsys_command(tool(both, has_gpu=False), None)
    assert {"--trace=nvtx", "--capture-range=nvtx"} < set(words)
    assert not [word for word in words if "cuda" in word]


def test_nsys_does_not_copy_the_programs_libraries_into_its_file(tool):
    """It does if it samples, or traces calls of the operating system: 190 MB, with torch's."""
    for has_gpu in (True, False):
        words = nsys_command(tool("", has_gpu), None)
        assert "--sample=none" in words and not [word for word in words if "osrt" in word]


def test_an_option_that_nsys_lacks_is_an_error(tool):
    with pytest.raises(BadInputError, match="--pytorch: needs an NVIDIA GPU"):
        nsys_command(tool("--pytorch=", has_gpu=False), "autograd-nvtx")
    with pytest.raises(BadInputError, match=r"version 2023\.4\.4, without this option"):
        nsys_command(tool("NVIDIA Nsight Systems version 2023.4.4", has_gpu=True), "autograd-nvtx")


def test_usage_errors(usage_error, monkeypatch):
    monkeypatch.setenv("FASTPROF_NSYS", "/none/nsys")
    assert "no PROGRAM given" in usage_error("run")
    assert "no PROGRAM given" in usage_error("run", "--")
    assert "expected A:B" in usage_error("run", "--steps", "3", "x.py")
    assert "expected A:B" in usage_error("run", "--steps", "3:3", "x.py")
    assert "step 0 has no begin" in usage_error("run", "--steps", "0:2", "x.py")
    assert "expected a size" in usage_error("run", "--max-memory", "much", "x.py")
    assert "expected a number of seconds" in usage_error("run", "--for", "-1", "x.py")
    assert "no nsys on the PATH" in usage_error("run", "--backend", "nsys", "x.py")


def test_a_program_that_cannot_start_is_an_error(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--backend", "torch", "./no-such-program"]) == 1
    assert "cannot be started" in capfd.readouterr().err
