"""`fastprof run --when`: the steps after a slow one are recorded, and the run says why."""

import errno
import json
import os
import random
import re
import sys
import time
from itertools import pairwise
from math import inf

import pytest

from fastprof._core._slow_steps import SlowSteps
from fastprof.cli import main
from fastprof.errors import BadInputError
from fastprof.runs.condition import Condition, causes_of, never_held, parse_condition
from fastprof.runs.facts import Settings, snapshot_of
from support.hypothesis_profiles import IS_FULL

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")

from fastprof.annotate import recorders
from fastprof.annotate.program import watch as watches
from fastprof.annotate.program.gpu_steps import GpuSteps
from fastprof.annotate.program.recording import MemoryHistory, StepRecording
from fastprof.annotate.program.watch import Watch
from support import processes, torch_server

SLOW = """
import sys, time, torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
slow = [int(each) for each in sys.argv[2].split(",") if each]
for i in range(int(sys.argv[1])):
    time.sleep(0.6 if i in slow else 0.01)
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
WHEN = "step > 0.5s"  # a loaded machine is no reason to record
DEFAULT = {"first": 10, "last": 13}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step > 1.2 * median", Condition("step", False, 1.2, True)),
        ("step>=median", Condition("step", True, 1.0, True)),
        ("  step > .5*median ", Condition("step", False, 0.5, True)),
        ("step > 200ms", Condition("step", False, 2e8)),
        ("step > 0.5 s", Condition("step", False, 5e8)),
        ("memory > 0.95", Condition("memory", False, 0.95)),
        ("memory >= 95%", Condition("memory", True, 0.95)),
    ],
)
def test_conditions(text, expected):
    assert parse_condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        ("", "step or memory", "''"),
        ("loss > 3", "step or memory", "'loss'"),
        ("step < 3ms", "> or >=", "'<'"),
        ("step", "> or >=", "''"),
        ("step > 200", "ns, us, ms or s", "'200'"),
        ("step > 2 * mean", "NUMBER * median", "'2 * mean'"),
        ("step > 0 * median", "NUMBER * median", "'0 * median'"),
        ("step > 1e999s", "ns, us, ms or s", "'1e999s'"),
        ("memory > 3", "a share of the GPU's memory", "'3'"),
        ("memory > 0.9 * median", "a share", "'0.9 * median'"),
        ("step > 2ms or memory > 0.9", "NUMBER * median", "'2ms or memory > 0.9'"),
    ],
)
def test_other_conditions_are_refused(text, expected, found):
    with pytest.raises(BadInputError) as caught:
        parse_condition(text)
    assert str(caught.value).startswith(f"{text!r}: expected ")
    assert expected in str(caught.value) and str(caught.value).endswith(f"found {found}")


@pytest.mark.parametrize("multiple", [0, 1.5])
@pytest.mark.parametrize("with_limit", [False, True])
def test_slow_steps_are_those_above_the_limit(multiple, with_limit):
    generator = random.Random(3)
    ends = []
    slow = SlowSteps(ends, multiple, 80.0, with_limit)
    assert slow.passed(5) and slow.ended(5, True) is False  # no begin
    lengths = [generator.randrange(1, 101) for _ in range(500)]
    kept, caught, expected, now = [], [], [], 5
    for step, length in enumerate(lengths, 1):
        median = sorted(kept[-101:])[len(kept[-101:]) // 2] if len(kept) >= 10 else None
        if median is not None:
            limit = multiple * median or 80
            if length > limit or (with_limit and length == limit):
                expected.append((step, length, median))
        if step > 3:
            kept.append(length)
        now += length
        if slow.passed(now) and slow.ended(now, True):
            caught.append((step, slow.length, slow.median))
    assert caught == expected and len(caught) > 50
    assert [end - begin for begin, end in pairwise(ends)] == lengths
    assert slow.longest[1] == max(lengths[13:])


def test_a_recorded_step_is_no_part_of_the_median():
    slow = SlowSteps([], 2, inf, False)
    slow.begin(1)
    assert not any(slow.ended(1 + 100 * i, True) for i in range(1, 20))
    slow.begin(1)
    assert [slow.ended(10_001, False), slow.ended(10_202, True)] == [False, True]
    assert (slow.length, slow.median) == (201, 100)
    slow.forget()
    slow.begin(1)
    assert slow.longest is None and not slow.ended(10**9, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--when", "step > 2", "x.py"], "argument --when: 'step > 2': expected"),
        (["--when", WHEN, "--steps", "3:5", "x.py"], "--when and --steps: expected one of them"),
        (["--when", WHEN, "--after", "3", "x.py"], "--when and --after: expected one of them"),
        (["--when", WHEN, "--for", "3", "x.py"], "--when and --for: expected one of them"),
        (["--times", "2", "x.py"], "--times: expected with --when"),
        (["--when", WHEN, "--times", "0", "x.py"], "'0': expected a number from 1 to 1000"),
        (["--when", WHEN, "--times", "2", "--backend", "nsys", "x.py"], "records once"),
    ],
)
def test_options_that_contradict_each_other(words, expected, tmp_path, monkeypatch, usage_error):
    monkeypatch.chdir(tmp_path)
    assert expected in usage_error("run", *words)
    assert not list(tmp_path.iterdir())


def spans(recorded):
    return [(recording["first"], recording["n_steps"]) for recording in recorded.recordings]


def test_the_steps_after_a_slow_one_are_recorded(record):
    recorded = record(SLOW, "40", "20,21,30", when=WHEN, **DEFAULT)
    assert spans(recorded) == [(22, 3)]  # 21 prepares the recorder
    assert recorded.steps == ["ProfilerStep#22", "ProfilerStep#23", "ProfilerStep#24"]
    assert recorded.layers["0"] == 3
    cause = recorded.recordings[0]["cause"]
    assert cause["step"] == 20 and cause["ns"] > 5e8 > 20 * cause["median_ns"] / 2 > 1e8 / 2
    lengths = recorded.report["step_lengths"]
    assert lengths["per"] == 1 and len(lengths["ns"]) == 25
    assert lengths["ns"][0] == 0  # its begin cannot be seen
    assert [step for step, length in enumerate(lengths["ns"]) if length > 5e8] == [20, 21]
    (line,) = causes_of([recorded.report])
    assert re.fullmatch(r"step 20 took [\d.]+ ms, median [\d.]+ ms: recorded steps 22 to 24", line)


def test_several_slow_steps_are_recorded(record):
    recorded = record(SLOW, "50", "16,24,32,40", when=WHEN, times=3, **DEFAULT)
    assert spans(recorded) == [(18, 3), (26, 3), (34, 3)]
    assert [recording["cause"]["step"] for recording in recorded.recordings] == [16, 24, 32]
    assert len(recorded.report["step_lengths"]["ns"]) == 37
    lengths = recorded.report["step_lengths"]["ns"]
    assert [step for step, length in enumerate(lengths) if length > 5e8] == [16, 24, 32]


def test_the_median_is_of_the_steps_before(record):
    recorded = record(SLOW, "40", "5,30", when="step > 10 * median", **DEFAULT)
    assert spans(recorded) == [(32, 3)]  # after step 5, no median is known yet


def test_short_steps_are_watched_where_they_are_counted(record):
    recorded = record(
        """
        import time, torch
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([parameter], 0.1)
        for i in range(20000):
            if i == 19000:
                time.sleep(0.6)
            optimizer.step()
        """,
        when=WHEN,
        **DEFAULT,
    )
    assert spans(recorded) == [(19002, 3)]
    lengths = recorded.report["step_lengths"]
    assert lengths["per"] == 8 and len(lengths["ns"]) == -(-19005 // 8)
    assert [i for i, length in enumerate(lengths["ns"]) if length > 5e8] == [19000 // 8]


def test_calls_of_modules_are_watched(record):
    recorded = record(
        """
        import time, torch
        net = torch.nn.Sequential(torch.nn.Linear(8, 8)).eval()
        with torch.no_grad():
            for i in range(40):
                time.sleep(0.6 if i == 20 else 0.01)
                net(torch.randn(4, 8))
        """,
        when=WHEN,
        **DEFAULT,
    )
    assert spans(recorded) == [(22, 3)]


def test_nothing_is_left_after_the_last_recording(record):
    from unit.annotate.program.test_steps import LEFT

    source = LEFT.replace("range(9)", "range(30)").replace(
        "    if i == 1:", "    if i in (16, 22): __import__('time').sleep(0.6)\n    if i == 23:"
    )
    assert "i in (16, 22)" in source
    recorded = record(source, when=WHEN, times=2, **DEFAULT)
    assert spans(recorded) == [(18, 3), (24, 3)]


def test_a_condition_that_never_holds_leaves_the_program_alone(record):
    recorded = record(SLOW, "30", "15", when="step > 100s", **DEFAULT)
    assert not recorded.recordings and not recorded.done.stderr
    most = recorded.report["most"]
    assert most["step"] == 15 and len(recorded.report["step_lengths"]["ns"]) == 30
    line = never_held(recorded.reports, "step > 100s")
    assert re.fullmatch(
        r"nothing recorded: --when 'step > 100s' never held in 30 steps: the longest, step 15 took "
        r"[\d.]+ ms, median [\d.]+ ms",
        line,
    )


def test_too_few_steps_have_no_median(record):
    recorded = record(SLOW, "9", "8", when=WHEN, **DEFAULT)
    assert not recorded.recordings
    line = never_held(recorded.reports, WHEN)
    assert line.endswith("needs a median of at least 10 steps after the first 4; found 9")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_memory_without_a_gpu_is_told(record):
    recorded = record(SLOW, "30", "", when="memory > 0.5", **DEFAULT)
    assert not recorded.recordings and not recorded.report["problem"]
    line = never_held(recorded.reports, "memory > 0.5")
    assert line.endswith("watched no GPU: torch used none on this machine")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_step_that_is_slow_on_the_gpu_alone_is_recorded(record):
    recorded = record(
        """
        import torch
        parameter = torch.nn.Parameter(torch.zeros(1, device="cuda"))
        optimizer = torch.optim.SGD([parameter], 0.1)
        for i in range(60):
            torch.cuda._sleep(2_000_000_000 if i == 20 else 20_000_000)
            parameter.sum().backward()
            optimizer.step()
            if i > 20:
                torch.cuda.synchronize()
        """,
        when="step > 0.4s",
        **DEFAULT,
    )
    cause = recorded.recordings[0]["cause"]
    assert cause["step"] in (20, 21) and cause["ns"] > 4e8


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_memory_is_watched_and_its_snapshot_kept(record):
    recorded = record(
        """
        import time, torch
        parameter = torch.nn.Parameter(torch.zeros(1, device="cuda"))
        optimizer = torch.optim.SGD([parameter], 0.1)
        total = torch.cuda.get_device_properties(0).total_memory
        for i in range(30):
            if i == 15:
                kept = torch.empty(total // 10, dtype=torch.uint8, device="cuda")
            time.sleep(0.15)
            parameter.sum().backward()
            optimizer.step()
        """,
        when="memory > 5%",
        **DEFAULT,
    )
    assert spans(recorded) == [(17, 3)]
    assert recorded.recordings[0]["cause"]["memory"] > 0.1
    trace = recorded.recordings[0]["path"]
    assert os.path.getsize(trace.replace("trace", "memory").replace(".json", ".pickle"))


class Clock:
    """A GPU that is behind: it reaches the marks of a stream when its time comes."""

    def __init__(self):
        self.now = self.work = 0.0  # ms: of the GPU, and of the end of what it has to do
        self.n_events = 0
        self.fails = False

    def event(self):
        self.n_events += 1
        return Mark(self)


class Mark:
    def __init__(self, clock):
        self.clock = clock

    def record(self):
        if self.clock.fails:
            raise RuntimeError("CUDA error: invalid resource handle")
        self.at = self.clock.work

    def query(self):
        return self.at <= self.clock.now

    def elapsed_time(self, end):
        assert self.query() and end.query()
        return end.at - self.at


def gpu_watch(text, clock, is_usable=lambda: True):
    condition = parse_condition(text)
    watch = Watch(condition)
    slow = SlowSteps([], *condition.limits, condition.with_limit)
    watch.watch_gpu(GpuSteps(slow, clock.event, is_usable))
    watch.begin()
    return watch


def end(watch):
    """A step ends on the host; whether the condition holds."""
    return bool(watch.passed(time.perf_counter_ns())) and watch.ended(time.perf_counter_ns())


@pytest.mark.parametrize("behind", [0, 3, 40])
def test_a_slow_step_of_the_gpu_is_told_when_the_gpu_has_ended_it(behind):
    clock, told = Clock(), []
    watch = gpu_watch("step > 40s", clock)
    for step in range(200):
        clock.work += 50_000.0 if step == 60 else 10.0
        clock.now = clock.work - 10 * behind
        if end(watch):
            told.append(step)
            assert watch.cause == {
                "step": 60, "ns": 50_000_000_000, "median_ns": 10_000_000, "on": "gpu"
            }  # fmt: skip
    assert told == [60 + max(1, behind)]  # the marks are looked at when the next step ends
    assert len(watch.facts()["step_lengths"]["ns"]) == 200
    assert clock.n_events <= behind + 2  # marks are used again


def test_the_gpu_is_not_compared_across_recordings_and_captured_graphs():
    clock, usable = Clock(), [True]
    watch = gpu_watch("step > 100s", clock, lambda: usable[0])
    told = []
    for step in range(100):
        clock.work = clock.now = clock.work + (10.0 if step not in (40, 60, 80) else 1e6)
        if step == 40:  # the recorder was on
            watch.ended(time.perf_counter_ns(), is_recorded=True)
            watch.begin()
            continue
        usable[0] = step != 60  # a graph is captured
        told += [step] * end(watch)
    assert told == [81]


def test_an_error_of_the_gpu_ends_its_watch_alone():
    clock = Clock()
    watch = gpu_watch("step > 100s", clock)
    for step in range(40):
        clock.work = clock.now = clock.work + (1e6 if step == 30 else 10.0)
        clock.fails = step == 20
        assert not end(watch)
    assert len(watch.facts()["step_lengths"]["ns"]) == 40


def test_a_gpu_that_is_far_behind_gets_no_more_marks():
    clock = Clock()
    watch = gpu_watch("step > 100s", clock)
    for _ in range(1000):
        clock.work += 10.0
        end(watch)
    assert clock.n_events <= 64


def test_the_share_of_memory_must_rise_above_the_limit(monkeypatch):
    shares = iter([0.5, 0.96, 0.97, 0.5, 0.96, None])
    monkeypatch.setattr(watches, "reserved_share", lambda: next(shares))
    watch = Watch(parse_condition("memory > 0.95"))
    looks = [watch.ended(1 + i * 100_000_000) for i in range(6)]
    assert looks == [False, True, False, False, True, False]
    assert watch.facts()["most"] == {"step": 2, "memory": 0.97}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_there_is_no_snapshot(tmp_path):
    path = snapshot_of(tmp_path / ".trace-7.json")
    history = MemoryHistory(path)
    history.end(keep=True)
    assert path.parent == tmp_path and not list(tmp_path.iterdir())


def test_a_snapshot_that_cannot_be_written_is_told_and_the_trace_kept(tmp_path, monkeypatch):
    """CPU builds of torch have no snapshots: the functions of torch are those of a full disk."""
    switched = []

    def dump(path):
        raise OSError(errno.ENOSPC, "No space left on device", path)

    memory = torch.cuda.memory
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(recorders, "synchronize", lambda: None)
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: False, raising=False)
    monkeypatch.setattr(
        memory, "_record_memory_history", lambda **options: switched.append(options)
    )
    monkeypatch.setattr(memory, "_dump_snapshot", dump)
    cause = {"step": 1, "memory": 0.97}
    settings = Settings(str(tmp_path), 1, 2)
    recording = StepRecording(settings, 0, 1, False, 1, None, list, None, cause)
    torch.ones(2).sum()
    assert recording.step_ended()
    assert recording.path.is_file() and not list(tmp_path.glob("*.pickle"))
    assert recording.note.startswith("the memory snapshot is lost: ")
    assert "no space left on the disk" in recording.note
    assert [each.get("enabled", True) for each in switched] == [True, None]


def run(folder, *words):
    command = [sys.executable, "-m", "fastprof", "run", "--backend", "torch", *words]
    return processes.ran(command, cwd=folder)


def test_a_run_says_why_it_recorded_and_shows_all_steps(tmp_path, monkeypatch, capfd):
    (tmp_path / "train.py").write_text(torch_server.BEGIN + SLOW)
    program = torch_server.command("train.py", "30", "20")
    done = run(tmp_path, "--when", WHEN, "--", *program)
    assert done.returncode == 0, done.stderr
    line = r"step 20 took [\d.]+ ms, median [\d.]+ ms: recorded steps 22 to 24"
    assert re.match(rf"fastprof: {line}\n", done.stderr), done.stderr
    (folder,) = tmp_path.glob("fastprof-runs/*")
    facts = json.loads((folder / "run.json").read_text())
    assert re.fullmatch(line, facts["causes"][0])
    assert len(facts["processes"][0]["step_lengths"]["ns"]) == 25
    page = (folder / "report.html").read_text()
    assert '<h2 id="run-steps-title">Steps of the run</h2>' in page
    assert re.search(rf"<p>S{line[1:]}\.</p>", page)
    monkeypatch.chdir(tmp_path)
    assert main(["report", folder.name, "-o", "again.html"]) == 0
    again = (tmp_path / "again.html").read_text()
    assert "Steps of the run" in again and "the recorded ones marked" in again
    # Facts are a file: what has another type is left out.
    for damaged in ({"per": 0, "ns": [1]}, {"per": "1", "ns": [1]}, {"per": 1, "ns": "12"}, [1]):
        facts["processes"][0]["step_lengths"] = damaged
        (folder / "run.json").write_text(json.dumps(facts))
        assert main(["report", folder.name, "-o", "damaged.html"]) == 0
        assert "Steps of the run" not in (tmp_path / "damaged.html").read_text()


@pytest.mark.skipif(not IS_FULL, reason="takes 7 s: make test-all")
def test_ranks_watch_by_themselves(tmp_path):
    (tmp_path / "train.py").write_text(
        "import os, sys\nsys.argv[2] = '20' if os.environ['RANK'] == '1' else ''\n" + SLOW
    )
    (tmp_path / "both.py").write_text(
        """
import os, subprocess, sys
own = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
started = [subprocess.Popen([sys.executable, "train.py", "30", ""], env={
    **os.environ, **own, "RANK": str(rank)}) for rank in range(2)]
sys.exit(max(each.wait() for each in started))
"""
    )
    done = run(tmp_path, "--when", WHEN, "both.py")
    assert done.returncode == 0, done.stderr
    assert re.match(r"fastprof: rank 1: step 20 took .*: recorded steps 22 to 24\n", done.stderr)
    (folder,) = tmp_path.glob("fastprof-runs/*")
    assert [path.name for path in folder.glob("trace*")] == ["trace.rank1.json.gz"]
    page = (folder / "report.html").read_text()
    assert "Length of steps of rank 0" in page and "Length of steps of rank 1" in page
