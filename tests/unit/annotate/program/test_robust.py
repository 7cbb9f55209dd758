"""Programs of `fastprof run` that use signals, profilers, threads or processes of their own."""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")


def test_the_signal_handler_of_the_program_is_left_alone(record):
    found = record(
        """
        import signal, time, torch
        seen = []
        signal.signal(signal.SIGUSR2, lambda *_: seen.append(1))
        net = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for i in range(8):
            net(torch.randn(4, 8)).sum().backward()
            time.sleep(0.05)
            optimizer.step()
        assert not seen
        signal.raise_signal(signal.SIGUSR2)
        assert seen
        """,
        after=0.1,
        seconds=0.1,
    )
    assert found.recordings[0]["n_steps"] >= 1


def test_a_profiler_of_the_program_ends_the_recording(record):
    found = record(
        """
        import torch
        net = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        def step():
            net(torch.randn(4, 8)).sum().backward()
            optimizer.step()
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
    assert [(each["first"], each["n_steps"]) for each in found.recordings] == [(3, 1)]
    assert found.report["problem"] is None
    (note,) = found.report["notes"]
    assert "recorded 1 of 2 steps: in step 4 the program starts a profiler of torch itself" in note


def test_a_capture_of_the_program_is_annotated(record, tmp_path):
    found = record(
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
    assert [(each["first"], each["n_steps"]) for each in found.recordings] == [(3, 1)]


SERVER = """
import sys, threading, torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8)).eval()
def serve(n):
    with torch.no_grad():
        for i in range(n):
            net(torch.randn(4, 8))
"""


def test_threads_that_call_a_model_are_recorded_from_one_of_them(record):
    found = record(
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
    assert found.report["problem"] is None
    assert [each["n_steps"] for each in found.recordings] == [2]
    assert found.counts[0]["layer:0"] == 2


def test_a_thread_for_each_request_is_reported(record):
    found = record(
        SERVER
        + """
for _ in range(20):
    thread = threading.Thread(target=serve, args=(1,))
    thread.start()
    thread.join()
serve(1)
        """
    )
    assert not found.recordings
    assert "the thread whose steps were recorded has ended" in found.report["problem"]


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
    found = record(
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
    assert sorted((each["rank"], each["world"]) for each in found.reports) == [(0, 2), (1, 2)]
    names = sorted(os.path.basename(each["recordings"][0]["path"]) for each in found.reports)
    assert names[0].endswith(".rank0.json") or names[1].endswith(".rank0.json")
