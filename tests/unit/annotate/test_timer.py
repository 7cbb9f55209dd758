"""fastprof.timer and fastprof.timings: measurement, counts and output.

The use of CUDA events is checked with stand-ins; the tests marked gpu use real events.
"""

import asyncio
import os
import threading
import time

import pytest

import fastprof

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

from fastprof.annotate import timer as module
from fastprof.annotate import timings as store
from fastprof.annotate.timer import TimerError
from support.waiting import in_threads

no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU on this machine")


@pytest.fixture(autouse=True)
def nothing_measured():
    fastprof.timings().reset()
    yield
    assert module._of_thread.started == []
    fastprof.timings().reset()


@pytest.fixture
def clock(monkeypatch):
    """A wall clock in ns that advances on demand."""
    now = [0]
    monkeypatch.setattr(module, "perf_counter_ns", lambda: now[0])

    def goes_on(ns):
        now[0] += ns

    return goes_on


def calls():
    return {row.name: row.calls for row in fastprof.timings().rows}


# Counts, by the wall clock.


def test_blocks_of_one_name_are_counted_together(clock):
    for ns in (5, 20, 11):
        with fastprof.timer("a", device="cpu"):
            clock(ns)
    assert fastprof.timings().to_dict() == {
        "a": {"wall": {"calls": 3, "total": 36, "mean": 12.0, "min": 5, "max": 20}}
    }


def test_the_table_is_sorted_by_total_and_in_ms(clock):
    for name, ms in (("short", 1), ("long", 2), ("long", 2.5), ("longest of names", 3)):
        with fastprof.timer(name, device="cpu"):
            clock(int(ms * 1e6))
    assert str(fastprof.timings()).splitlines() == [
        "name              clock  calls  total ms  mean ms  min ms  max ms",
        "long              wall       2     4.500    2.250   2.000   2.500",
        "longest of names  wall       1     3.000    3.000   3.000   3.000",
        "short             wall       1     1.000    1.000   1.000   1.000",
    ]


def test_nothing_measured_is_said():
    assert (str(fastprof.timings()), fastprof.timings().rows) == ("nothing was timed", ())
    assert fastprof.timings().to_dict() == {}


def test_timers_print_nothing(capfd):
    with fastprof.timer("a"):
        pass
    assert fastprof.timings().rows
    assert capfd.readouterr() == ("", "")


def test_what_was_measured_is_a_snapshot_that_reset_does_not_change(clock):
    with fastprof.timer("a"):
        clock(7)
    before = fastprof.timings()
    before.reset()
    assert (before.rows[0].total, fastprof.timings().rows) == (7, ())


def test_a_block_that_runs_during_a_reset_counts_when_it_ends(clock):
    with fastprof.timer("a"):
        clock(1)
        fastprof.timings().reset()
        clock(2)
    assert fastprof.timings().rows[0].total == 3


def test_timers_nest(clock):
    with fastprof.timer("outer"):
        clock(1)
        with fastprof.timer("inner"):
            clock(10)
        clock(100)
    result = fastprof.timings().to_dict()
    assert (result["outer"]["wall"]["total"], result["inner"]["wall"]["total"]) == (111, 10)


def test_one_timer_may_be_entered_again_before_it_is_left(clock):
    timer = fastprof.timer("a")

    @timer
    def recursive(depth):
        clock(1)
        if depth:
            recursive(depth - 1)

    recursive(3)
    with timer:
        clock(10)
    (row,) = fastprof.timings().rows
    assert (row.calls, row.total, row.min, row.max) == (5, 4 + 3 + 2 + 1 + 10, 1, 10)


def test_blocks_may_end_in_another_order_than_they_began(clock):
    first, second = fastprof.timer("first"), fastprof.timer("second")
    first.__enter__()
    clock(1)
    second.__enter__()
    clock(10)
    first.__exit__(None, None, None)
    clock(100)
    second.__exit__(None, None, None)
    result = fastprof.timings().to_dict()
    assert (result["first"]["wall"]["total"], result["second"]["wall"]["total"]) == (11, 110)


def test_an_error_in_the_block_ends_the_measurement(clock):
    with pytest.raises(KeyError), fastprof.timer("a"):
        clock(4)
        raise KeyError
    assert fastprof.timings().rows[0].total == 4


def test_a_decorated_function_is_the_function_that_it_was(clock):
    @fastprof.timer("a")
    def add(x, *, y=1):
        """Add."""
        clock(1)
        return x + y

    assert (add(1, y=2), add(3), add.__name__, add.__doc__) == (3, 4, "add", "Add.")
    assert calls() == {"a": 2}


def test_coroutines_that_overlap_are_timed_each_for_itself(clock):
    @fastprof.timer("a")
    async def outer(inner_ended):
        clock(10)
        await inner_ended.wait()
        clock(100)

    @fastprof.timer("a")
    async def inner(ended):
        clock(1)
        ended.set()

    async def both():
        ended = asyncio.Event()
        await asyncio.gather(outer(ended), inner(ended))

    asyncio.run(both())
    (row,) = fastprof.timings().rows
    assert (row.calls, row.min, row.max) == (2, 1, 111)


def test_a_generator_is_refused_with_what_to_do():
    with pytest.raises(TimerError, match="is a generator, whose body runs after the call"):

        @fastprof.timer("a")
        def numbers():
            yield 1


def test_threads_share_names_and_timers():
    timer = fastprof.timer("a")
    gate = threading.Barrier(4)

    def work():
        gate.wait()
        for _ in range(500):
            with timer, fastprof.timer("b"):
                pass

    in_threads(*[work] * 4)
    assert calls() == {"a": 2000, "b": 2000}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": 3}, "timer.3.: expected a name"),
        ({"name": "a", "device": "tpu!"}, "device='tpu!': expected 'cuda' or 'cpu'"),
        ({"name": "a", "device": 1.5}, "device=1.5: expected 'cuda' or 'cpu'"),
        ({"name": "a", "device": "meta"}, "no timer for 'meta'"),
    ],
)
def test_wrong_arguments_are_told(wrong, message):
    with pytest.raises(TimerError, match=message):
        fastprof.timer(**wrong)
    assert issubclass(TimerError, fastprof.FastprofError)


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
def test_cuda_that_is_not_there_is_told():
    with pytest.raises(TimerError, match="CUDA is not available; omit device, or use 'cpu'"):
        fastprof.timer("a", device="cuda")


def test_the_clock_of_the_wall_is_the_machines():
    began = time.perf_counter_ns()
    with fastprof.timer("a", device=torch.device("cpu")):
        time.sleep(0.02)
    assert 19e6 < fastprof.timings().rows[0].total < time.perf_counter_ns() - began


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_begins_anew():
    with fastprof.timer("a"):
        pass
    child = os.fork()
    if child == 0:
        os._exit(bool(calls()))
    assert os.waitpid(child, 0)[1] == 0
    assert calls() == {"a": 1}


# Compiled code.


def compiled(function):
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return graph.forward

    result = torch.compile(function, fullgraph=True, backend=backend)(torch.ones(2))
    assert len(graphs) == 1
    return result


@pytest.fixture
def dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_timer_made_in_compiled_code_leaves_one_graph_and_does_nothing(dynamo):
    def function(x):
        with fastprof.timer("a"):
            x = x + 1
        with fastprof.timer("b", device="cpu"):
            return x * 2

    assert compiled(function).tolist() == [4, 4]
    assert calls() == {}


def test_a_decorated_function_in_compiled_code_leaves_one_graph(dynamo):
    @fastprof.timer("a")
    def inner(x):
        return x + 1

    assert compiled(lambda x: inner(x) * 2).tolist() == [4, 4]
    assert calls() == {}


def test_a_timer_around_compiled_code_measures_it(dynamo):
    function = torch.compile(lambda x: x + 1, fullgraph=True, backend="eager")
    with fastprof.timer("a"):
        function(torch.ones(2))
    assert calls() == {"a": 1}


# CUDA events. Stand-ins: a GPU whose clock the test sets, in ms.


class Gpu:
    def __init__(self):
        self.comes_to = []  # times of the events recorded next
        self.now = 0.0
        self.log = []


class Stream:
    device = torch.device("cuda", 1)


def event_of(gpu):
    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self, stream):
            assert isinstance(stream, Stream)
            self.time = gpu.comes_to.pop(0) if gpu.comes_to else gpu.now

        def query(self):
            gpu.log.append("query")
            return self.time <= gpu.now

        def synchronize(self):
            gpu.log.append("synchronize")
            gpu.now = max(gpu.now, self.time)

        def elapsed_time(self, end):
            assert max(self.time, end.time) <= gpu.now
            return end.time - self.time

    return Event


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "Event", event_of(gpu))
    return gpu


def test_events_are_waited_for_only_when_the_times_are_read(gpu):
    gpu.comes_to = [1.0, 3.5]
    with fastprof.timer("a"):
        pass
    assert gpu.log == []
    (row,) = fastprof.timings().rows
    assert (row.clock, row.total, gpu.log) == ("cuda", 2_500_000, ["synchronize"])
    assert fastprof.timings().rows == (row,)


def test_many_events_are_counted_when_they_are_past_without_waiting(gpu):
    for i in range(2000):
        gpu.now = float(i)
        gpu.comes_to = [i, i + 0.5]
        with fastprof.timer("a"):
            pass
        assert len(store._all.waiting) <= 512
    assert "synchronize" not in gpu.log
    assert fastprof.timings().rows[0].calls == 2000
    assert fastprof.timings().rows[0].total == 2000 * 500_000


def test_events_that_are_not_past_are_not_asked_over_and_over(gpu):
    gpu.comes_to = [1e9] * 40_000
    for _ in range(20_000):
        with fastprof.timer("a"):
            pass
    assert len(gpu.log) < 2 * 20_000
    assert "synchronize" not in gpu.log
    assert fastprof.timings().rows[0].calls == 20_000


def test_both_clocks_of_one_name_are_told_apart(gpu):
    with fastprof.timer("a"), fastprof.timer("a", device="cpu"):
        pass
    assert {row.clock for row in fastprof.timings().rows} == {"cuda", "wall"}
    assert set(fastprof.timings().to_dict()["a"]) == {"cuda", "wall"}


def test_a_program_that_does_not_use_cuda_yet_is_timed_by_the_wall_clock(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    with fastprof.timer("a"), fastprof.timer("b", device="cuda:1"):
        pass
    assert {row.name: row.clock for row in fastprof.timings().rows} == {"a": "wall", "b": "cuda"}


def test_nothing_is_measured_while_a_graph_is_captured(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with fastprof.timer("a"), fastprof.timer("b", device="cpu"):
        pass
    assert calls() == {"b": 1}


def test_a_gpu_in_trouble_does_not_hide_the_error_of_the_block(gpu, monkeypatch):
    def fails(device):
        raise RuntimeError("CUDA error")

    with pytest.raises(KeyError), fastprof.timer("a"):
        monkeypatch.setattr(torch.cuda, "current_stream", fails)
        raise KeyError
    assert calls() == {}


# With a GPU.


@pytest.mark.gpu
@no_gpu
def test_cuda_events_measure_what_the_gpu_does_and_not_the_call():
    x = torch.ones(4096, 4096, device="cuda")
    x @ x
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    with fastprof.timer("cuda"), fastprof.timer("wall", device="cpu"):
        for _ in range(20):
            x @ x
    torch.cuda.synchronize()
    took = time.perf_counter_ns() - start
    result = fastprof.timings().to_dict()
    assert 0.5 * took < result["cuda"]["cuda"]["total"] < 1.1 * took
    assert result["wall"]["wall"]["total"] < took


@pytest.mark.gpu
@no_gpu
def test_the_current_stream_is_timed():
    x = torch.ones(2048, 2048, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()), fastprof.timer("idle stream"):
        pass
    with fastprof.timer("busy"):
        for _ in range(50):
            x @ x
    result = fastprof.timings().to_dict()
    assert result["idle stream"]["cuda"]["total"] < result["busy"]["cuda"]["total"]


@pytest.mark.gpu
@no_gpu
def test_a_graph_may_be_captured_around_a_timer():
    x = torch.ones(64, 64, device="cuda")
    x @ x
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), fastprof.timer("a"):
        x @ x
    with fastprof.timer("replay"):
        graph.replay()
    assert calls() == {"replay": 1}
