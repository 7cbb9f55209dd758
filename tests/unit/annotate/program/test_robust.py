"""Programs of `fastprof run` that use signals, profilers, threads or processes of their own."""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")


def test_the_signal_handler_of_the_program_is_left_alone(record_steps):
    recorded_steps = record_steps(
        """
        seen = []
        signal.signal(signal.SIGUSR2, lambda *_: seen.append(1))
        for i in range(8):
            time.sleep(0.05)
            step()
        assert not seen
        signal.raise_signal(signal.SIGUSR2)
        assert seen
        """,
        after=0.1,
        seconds=0.1,
    )
    assert recorded_steps.recordings[0]["n_steps"] >= 1


def test_a_profiler_of_the_program_ends_the_recording(record_steps):
    recorded_steps = record_steps(
        """
        for i in range(4):
            step()
        with torch.profiler.profile() as profile:
            step()
        assert "aten::addmm" in {each.name for each in profile.events()}
        with torch.autograd.profiler.profile() as profile:
            step()
        assert torch.profiler.profile.__init__.__name__ == "__init__"
        assert "fastprof" not in repr(torch.profiler.profile.__init__)
        """
    )
    assert [
        (recording["first"], recording["n_steps"]) for recording in recorded_steps.recordings
    ] == [(3, 1)]
    assert recorded_steps.report["problem"] is None
    (note,) = recorded_steps.report["notes"]
    assert "recorded 1 of 2 steps: in step 4 the program starts a profiler of torch itself" in note


STARTS = "in step {} the program starts a profiler of torch itself"


@pytest.mark.parametrize("wait", range(6))
def test_a_profiler_with_a_schedule_keeps_all_its_events(record_steps, wait):
    recorded_steps = record_steps(
        f"""
schedule = torch.profiler.schedule(wait={wait}, warmup=1, active=2, repeat=1)
with torch.profiler.profile(schedule=schedule) as profile:
    for i in range(9):
        step()
        profile.step()
names = [each.name for each in profile.events()]
assert names.count("aten::addmm") == 2
        """
    )
    said = " ".join([recorded_steps.report["problem"] or "", *recorded_steps.report["notes"]])
    # Recorded are steps 3 and 4, after step 2 that warms up; theirs warms up in step `wait`.
    assert ("already active in step 2" in said) == (wait < 2)
    assert (STARTS.format(wait) in said) == (2 <= wait < 5)
    assert [recording["n_steps"] for recording in recorded_steps.recordings] == [
        [],
        [],
        [0],
        [0],
        [1],
        [2],
    ][wait]


@pytest.mark.parametrize("kind", ["torch.profiler.profile", "torch.autograd.profiler.profile"])
def test_a_profiler_that_was_made_before_the_recording(record_steps, kind):
    recorded_steps = record_steps(
        f"""
profile = {kind}()
for i in range(4):
    step()
with profile:
    step()
events = getattr(profile, "function_events", None) or profile.events()
assert "aten::addmm" in [each.name for each in events]
        """
    )
    assert recorded_steps.report["problem"] is None
    assert STARTS.format(4) in recorded_steps.report["notes"][0]


@pytest.mark.parametrize("is_main", [True, False], ids=["main thread", "other thread"])
def test_a_profiler_of_another_thread_than_the_recorded_one(record_steps, is_main):
    recorded_steps = record_steps(
        f"""
def train():
    for i in range(100):
        step()
        if i == 3:
            reached.set()
            if {is_main}:
                other.join()
        time.sleep(0.01)
def profile():
    reached.wait()
    with torch.profiler.profile() as profile:
        torch.ones(8, 8) @ torch.ones(8, 8)
    names.append([each.name for each in profile.events()])
reached, names = threading.Event(), []
other = threading.Thread(target=profile if {is_main} else train)
other.start()
(train if {is_main} else profile)()
other.join()
assert "aten::mm" in names[0]
        """,
        last=100,
    )
    assert recorded_steps.report["problem"] is None
    assert "the program starts a profiler of torch itself" in recorded_steps.report["notes"][0]
    assert 1 <= recorded_steps.recordings[0]["n_steps"] < 90


LEFT_THREAD = """
def train():
    for i in range(6):
        step()
        seen.append(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)
        time.sleep(0.01)
        if i == 4:
            reached.set()
            time.sleep(pause)
    time.sleep(60 if pause else 0)  # torch aborts if a daemon thread calls it while Python exits
reached, seen = threading.Event(), []
thread = threading.Thread(target=train, daemon=True)
thread.start()
reached.wait()
"""


@pytest.mark.parametrize(
    ("pause", "n_steps"), [(0.2, 3), (60, 0)], ids=["that goes on", "that waits"]
)
@pytest.mark.parametrize("end", ["exit", "SIGTERM"])
def test_a_program_that_ends_while_a_thread_of_it_is_recorded(record_steps, pause, n_steps, end):
    is_exit = end == "exit"
    ends = "raise SystemExit(3)" if is_exit else f"os.kill(os.getpid(), signal.{end})"
    source = f"pause = {pause}" + LEFT_THREAD + ends
    recorded_steps = record_steps(source, code=3 if is_exit else -15, last=9)
    assert recorded_steps.report["is_over"] and recorded_steps.report["problem"] is None
    (recording,) = recorded_steps.recordings
    assert (recording["n_steps"], recording["path"] is not None) == (n_steps, n_steps > 0)
    lost = "the thread that was recorded ended no step before the program ended"
    assert any(lost in note for note in recorded_steps.report["notes"]) == (n_steps == 0)


def test_the_handlers_of_signals_are_put_back_when_a_thread_was_recorded(record_steps):
    seen = "thread.join(); assert seen[2:4] == [True, True] and not seen[5]"
    record_steps("pause = 0" + LEFT_THREAD + seen)


def test_a_capture_of_the_program_is_annotated(record, tmp_path):
    recording = record(
        """
        import sys, torch, fastprof
        fastprof.init()
        net = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        def step():
            net(torch.randn(4, 8)).sum().backward()
            optimizer.step()
        for i in range(4):
            step()
        with fastprof.capture(wait=0, warmup=0, active=1, backend="torch", path=sys.argv[1]) as one:
            step()
            one.step()
        """,
        tmp_path / "own.json",
    )
    text = (tmp_path / "own.json").read_text()
    assert "'op': 'linear'" in text and "ProfilerStep#0" in text
    assert [(each["first"], each["n_steps"]) for each in recording.recordings] == [(3, 1)]


SERVER = """
import sys, threading, torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8)).eval()
def serve(n):
    with torch.no_grad():
        for i in range(n):
            net(torch.randn(4, 8))
"""


def test_threads_that_call_a_model_are_recorded_from_one_of_them(record):
    recording = record(
        SERVER
        + """
together = threading.Barrier(4)
def serve_together(n):
    for i in range(n):
        together.wait()  # no thread calls the model only while another one is recorded
        serve(1)
threads = [threading.Thread(target=serve_together, args=(50,)) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
        """
    )
    assert recording.report["problem"] is None
    assert [each["n_steps"] for each in recording.recordings] == [2]
    assert recording.counts[0]["layer:0"] == 2


def test_a_thread_for_each_request_is_reported(record):
    recording = record(
        SERVER
        + """
for _ in range(20):
    thread = threading.Thread(target=serve, args=(1,))
    thread.start()
    thread.join()
serve(1)
        """
    )
    assert not recording.recordings
    assert "the thread whose steps were recorded has ended" in recording.report["problem"]


RANK = """
import sys, torch
from torch import distributed
def work(rank):
    distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank,
                                   world_size=2)
    net = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for i in range(6):
        net(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    distributed.barrier()
    distributed.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")
def test_ranks_without_a_launcher_have_their_own_numbers(record, tmp_path):
    recording = record(
        RANK
        + """
import atexit, os
children = [os.fork() for _ in range(1)]
work(0 if children[0] else 1)
if children[0]:
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        """,
        tmp_path / "store",
    )
    assert sorted((report["rank"], report["world"]) for report in recording.reports) == [
        (0, 2),
        (1, 2),
    ]
    names = sorted(
        os.path.basename(report["recordings"][0]["path"]) for report in recording.reports
    )
    assert names[0].endswith(".rank0.json") or names[1].endswith(".rank0.json")
