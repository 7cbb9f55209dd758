"""`idle` on small captures, each with one known cause."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.gpu.page import RECORDED

import fastprof
from fastprof.analysis.gpu_work import work_of_device
from fastprof.analysis.idle.causes import Cause, Host, split
from fastprof.api.profile import Profile
from fastprof.errors import ReportError
from support.commands import run
from support.exports import PID, Export, global_tid
from support.kineto_files import KinetoFile

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ENGINE, WORKER = 2, 3  # threads
Row = dict[str, Any]


class Capture(KinetoFile):
    """Kernels and calls of one process, times in us."""

    def __init__(self) -> None:
        super().__init__()
        self._corr = 0

    def call(self, start: float, end: float, name: str, tid: int = 1) -> Capture:
        """An API call that launches nothing."""
        self._corr += 1
        self.launch(round(start * US), round(end * US), self._corr, tid, name)
        return self

    def work(
        self, launch: tuple[float, float], gpu: tuple[float, float], tid: int = 1,
        name: str = "cudaLaunchKernel", stream: int = 7, kernel: str = "gemm", device: int = 0,
    ) -> Capture:  # fmt: skip
        """A kernel with its launch."""
        self.call(*launch, name, tid)
        start, end = (round(each * US) for each in gpu)
        self.kernel(start, end, self._corr, kernel, stream=stream, device=device)
        return self

    def copied(self, launch: tuple[float, float], gpu: tuple[float, float], name: str) -> Capture:
        """A copy with its launch."""
        self.call(*launch, "cudaMemcpyAsync")
        self.copy(round(gpu[0] * US), round(gpu[1] * US), self._corr, name, 4)
        return self

    def first(self) -> Capture:
        """A first kernel that ends at 100."""
        return self.work((0, 10), (20, 100))


Reader = Callable[..., Profile]


@pytest.fixture
def profile(tmp_path: Path) -> Reader:
    def read(trace: KinetoFile | Export) -> Profile:
        name = "x.json" if isinstance(trace, KinetoFile) else "x.sqlite"
        return fastprof.open(trace.write(tmp_path / name), copies=True)

    return read


def causes(profile: Profile, **options: Any) -> dict[str, float]:
    """us by cause; together they are the idle time."""
    table = profile.idle(**options)
    result = {row["cause"]: row["ns"] / US for row in table.rows()}
    assert sum(row["ns"] for row in table.rows()) == table.total["ns"]
    assert table.total["ns"] == sum(gpu["idle_ns"] for gpu in table.facts["gpus"])
    assert all(ns > 0 for ns in result.values())
    return result


def row_of(profile: Profile, cause: str, **options: Any) -> Row:
    return next(row for row in profile.idle(**options).rows() if row["cause"] == cause)


# -- launched before the gap -----------------------------------------------------------------------


def test_work_that_begins_soon_after_its_launch_or_the_work_before(profile: Reader) -> None:
    trace = Capture().first().work((95, 99), (103, 200)).work((50, 60), (204, 210))
    assert causes(profile(trace)) == {"launch latency": 7}


@pytest.mark.parametrize(
    ("before", "stream", "wait", "expected"),
    [
        ("gemm", 7, False, "(same stream)"),
        ("gemm", 8, False, "(other stream)"),
        ("gemm", 8, True, "cudaStreamWaitEvent"),
        ("Memcpy HtoD (Pinned -> Device)", 8, False, "(copy)"),
    ],
)
def test_queued_work_depends_on_what_ended_before_or_an_event(
    profile: Reader, before: str, stream: int, wait: bool, expected: str
) -> None:
    trace = Capture()
    if before == "gemm":
        trace.first()
    else:
        trace.copied((0, 10), (20, 100), before)
    if wait:
        trace.call(12, 14, "cudaStreamWaitEvent")
    trace.work((20, 30), (150, 200), stream=stream)
    read = profile(trace)
    assert causes(read) == {"dependency": 50}
    assert row_of(read, "dependency")["call"] == expected


def test_an_event_before_an_earlier_launch_is_not_waited_for(profile: Reader) -> None:
    trace = Capture().call(-5, -3, "cudaStreamWaitEvent").first()
    read = profile(trace.work((20, 30), (150, 200), stream=8))
    assert row_of(read, "dependency")["call"] == "(other stream)"


# -- the host is late ------------------------------------------------------------------------------


def test_a_slow_loader(profile: Reader) -> None:
    trace = Capture().first().annotation(90 * US, 600 * US, LOADER)
    trace.annotation(500 * US, 650 * US, LOADER)  # nested or overlapping ranges count once
    trace.work((700, 708), (712, 800))
    read = profile(trace)
    assert causes(read) == {"data loading": 550, "host-bound": 50, "launch latency": 12}
    row = row_of(read, "data loading")
    assert (row["gaps"], row["longest_ns"], row["range"]) == (1, 612 * US, LOADER)
    assert row["share"] == pytest.approx(550 / 780)


def test_ranges_that_the_user_names_load_data(profile: Reader) -> None:
    trace = Capture().first().annotation(110 * US, 600 * US, "tokenise")
    read = profile(trace.work((600, 608), (612, 800)))
    assert causes(read) == {"host-bound": 500, "launch latency": 12}
    result = causes(read, data="tokeni[sz]e")
    assert result == {"data loading": 490, "host-bound": 10, "launch latency": 12}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cudaMalloc", "allocation"),
        ("hipFree", "deallocation"),
        ("cuModuleLoadData", "code loading"),
        ("cudaGetSymbolAddress", "code loading"),
        ("cudaStreamCreateWithFlags", "creation"),
        ("cuCtxCreate", "creation"),
        ("cuLinkComplete", "JIT compilation"),
        ("nvrtcCompileProgram", "JIT compilation"),
    ],
)
def test_a_call_in_the_gap(profile: Reader, name: str, cause: str) -> None:
    trace = Capture().first().call(110, 400, name)
    read = profile(trace.work((420, 425), (430, 500)))
    assert causes(read) == {cause: 290, "host-bound": 30, "launch latency": 10}
    assert row_of(read, cause)["call"] == name


def test_the_first_launch_of_a_kernel_loads_its_code(profile: Reader) -> None:
    trace = Capture().first().work((110, 900), (905, 1000), kernel="new")
    trace.work((1010, 1810), (1815, 1900), kernel="new")
    read = profile(trace)
    # The second launch is as long, for a reason that is not recorded.
    assert causes(read) == {"code loading": 790, "launch latency": 810, "host-bound": 20}
    assert row_of(read, "code loading")["call"] == "cudaLaunchKernel"


def test_synchronize_takes_the_gap_that_it_opens_until_the_host_is_back(profile: Reader) -> None:
    trace = Capture().first().call(30, 105, "cudaDeviceSynchronize")
    read = profile(trace.work((300, 305), (310, 400)))
    assert causes(read) == {"sync": 55, "host-bound": 145, "launch latency": 10}
    read = profile(
        Capture().first().call(30, 105, "cudaDeviceSynchronize").work((140, 145), (150, 200))
    )
    assert causes(read) == {"sync": 40, "launch latency": 10}
    assert row_of(read, "sync")["call"] == "cudaDeviceSynchronize"


@pytest.mark.parametrize("name", ["cuMemcpyHtoD_v2", "cudaMemcpy", "cuMemcpyDtoHAsync_v2"])
def test_a_gap_after_a_copy_is_what_the_host_does_in_it(profile: Reader, name: str) -> None:
    trace = Capture()
    trace.call(0, 97.4, name)
    trace.copy(20 * US, 100 * US, 1, "Memcpy HtoD (Pageable -> Device)", 4)
    trace.annotation(95 * US, 30_000 * US, "matmul").call(200, 250, "cudaGetLastError")
    read = profile(trace.work((29_990, 29_995), (30_000, 30_010)))
    assert causes(read) == {
        "blocking copy": 47.4, "host-bound": 29_842.6, "launch latency": 10,
    }  # fmt: skip
    assert row_of(read, "host-bound")["range"] == "matmul"


def test_a_stream_is_created_after_a_copy(profile: Reader) -> None:
    trace = Capture().call(0, 99, "cudaMemcpy")
    trace.copy(20 * US, 100 * US, 1, "Memcpy HtoD (Pageable -> Device)", 4)
    trace.call(500, 1_532_500, "cudaStreamCreateWithFlags")
    read = profile(trace.work((1_533_000, 1_533_005), (1_533_010, 1_533_100)))
    assert causes(read) == {
        "creation": 1_532_000, "host-bound": 851, "blocking copy": 49, "launch latency": 10,
    }  # fmt: skip
    assert row_of(read, "creation")["call"] == "cudaStreamCreateWithFlags"


def test_short_creations_do_not_count(profile: Reader) -> None:
    trace = Capture().first().call(110, 115, "cudaEventCreateWithFlags")
    read = profile(trace.work((300, 305), (310, 400)))
    assert causes(read) == {"host-bound": 200, "launch latency": 10}


NUMBA = "cudapy::__main__::matmul[abi:v1](Array<double, 2>)"


def test_numba_compiles_before_the_first_launch(profile: Reader) -> None:
    trace = Capture().first().annotation(150 * US, 20_100 * US, "matmul")
    trace.work((20_000, 20_005), (20_010, 20_100), kernel=NUMBA)
    trace.work((40_000, 40_005), (40_010, 40_100), kernel=NUMBA)
    read = profile(trace)
    assert causes(read) == {
        "JIT compilation": 19_850, "host-bound": 50 + 19_900, "launch latency": 20,
    }  # fmt: skip
    assert row_of(read, "JIT compilation")["range"] == "matmul"


@pytest.mark.parametrize("name", ["cuLinkComplete", "cuModuleLoadDataEx", "nvrtcCompileProgram"])
def test_host_time_before_a_call_that_needs_compiled_code(profile: Reader, name: str) -> None:
    trace = Capture().first().call(15_000, 15_100, name)
    result = causes(profile(trace.work((15_200, 15_205), (15_210, 15_300))))
    compiles = 14_900 + (0 if "Module" in name else 100)
    assert result["JIT compilation"] == compiles
    assert result.get("code loading", 0) == 15_000 - compiles
    assert result["host-bound"] == 100


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("backend_compile (dynamo_timed)", "JIT compilation"),
        ("compile_fx.<locals>.fw_compiler_base (dynamo_timed)", "JIT compilation"),
        ("async_compile.wait", "JIT compilation"),
        ("jit compile", "JIT compilation"),
        ("cublasCreate_v2", "creation"),
        # These run what was compiled.
        ("## Call CompiledFxGraph fal4xpiah2v6 ##", "host-bound"),
        ("Torch-Compiled Region: 0/0", "host-bound"),
        ("TorchDynamo Cache Lookup", "host-bound"),
        ("precompiled", "host-bound"),
    ],
)
def test_ranges_that_compile_or_create(profile: Reader, name: str, cause: str) -> None:
    trace = Capture().first().annotation(110 * US, 900 * US, name)
    result = causes(profile(trace.work((900, 905), (910, 1000))))
    assert max(result, key=lambda each: result[each]) == cause
    assert result[cause] == (800 if cause == "host-bound" else 790)


def test_frames_of_compilers(profile: Reader) -> None:
    trace = (
        Capture().first().python(110 * US, 900 * US, "triton/compiler/compiler.py(226): compile")
    )
    result = causes(profile(trace.work((900, 905), (910, 1000))))
    assert result == {"JIT compilation": 790, "host-bound": 10, "launch latency": 10}


def test_a_context_is_created_by_the_first_call_of_a_process(profile: Reader) -> None:
    trace = Capture().first()
    trace.launch(110 * US, 90_000 * US, 77, 9, "cudaFree", pid=200)
    trace.launch(90_100 * US, 90_105 * US, 78, 9, pid=200)
    trace.kernel(90_110 * US, 90_200 * US, 78)
    assert causes(profile(trace))["creation"] == 89_890


def test_places_are_open_for_most_of_the_gap(profile: Reader) -> None:
    trace = Capture().first()
    trace.op(100 * US, 219 * US, "aten::sub").annotation(90 * US, 300 * US, "short")
    trace.annotation(50 * US, 1000 * US, "long")
    read = profile(trace.work((880, 885), (890, 900)))
    row = row_of(read, "host-bound")
    assert (row["op"], row["range"]) == (None, "long")
    trace = Capture().first().op(100 * US, 600 * US, "aten::sub")
    row = row_of(profile(trace.work((880, 885), (890, 900))), "host-bound")
    assert (row["op"], row["range"]) == ("sub", None)


def test_a_place_of_less_than_the_rest_is_unknown(profile: Reader) -> None:
    trace = Capture().first().op(100 * US, 200 * US, "aten::sub").work((200, 205), (210, 300))
    read = profile(trace.work((900, 905), (910, 1000)))
    assert row_of(read, "host-bound")["op"] is None


def test_an_earlier_synchronize_does_not(profile: Reader) -> None:
    trace = Capture().call(-90, -10, "cudaDeviceSynchronize").first()
    assert causes(profile(trace.work((300, 305), (310, 400)))) == {
        "host-bound": 200, "launch latency": 10,
    }  # fmt: skip


def items(every: int) -> Capture:
    """Three steps, `every` us each, that end with the item() of a tensor."""
    trace = Capture()
    for at in (0, every, 2 * every):
        trace.work((at, at + 5), (at + 20, at + 300))
        trace.op((at + 30) * US, (at + 320) * US, "aten::item")
        trace.op((at + 31) * US, (at + 319) * US, "aten::_local_scalar_dense")
        copy = (at + 302, at + 304)
        trace.copied((at + 32, at + 40), copy, "Memcpy DtoH (Device -> Pageable)")
        trace.call(at + 41, at + 310, "cudaStreamSynchronize")
    return trace


def test_item_in_the_loop(profile: Reader) -> None:
    assert causes(profile(items(1000))) == {
        "blocking copy": 2 * 56, "host-bound": 2 * 640, "launch latency": 2 * 20 + 3 * 2,
    }  # fmt: skip


def test_item_in_a_loop_that_is_fast(profile: Reader) -> None:
    read = profile(items(350))
    assert causes(read) == {"blocking copy": 2 * 46, "launch latency": 2 * 20 + 3 * 2}
    row = row_of(read, "blocking copy")
    assert (row["call"], row["op"], row["gaps"]) == ("cudaMemcpyAsync", "_local_scalar_dense", 2)


def test_a_copy_from_pageable_memory(profile: Reader) -> None:
    trace = Capture().first()
    trace.copied((110, 400), (300, 395), "Memcpy HtoD (Pageable -> Device)")
    assert causes(profile(trace)) == {"blocking copy": 190, "host-bound": 10}


def test_a_model_of_tiny_kernels(profile: Reader) -> None:
    trace = Capture()
    for i in range(20):
        trace.op((30 * i - 4) * US, (30 * i + 6) * US, "aten::add")
        trace.work((30 * i, 30 * i + 5), (30 * i + 7, 30 * i + 9))
    read = profile(trace)
    assert causes(read) == {"launch-bound": 19 * 21, "launch latency": 19 * 7}
    assert row_of(read, "launch-bound")["gaps"] == 19
    assert read.idle().facts["starved"] == 1


def test_slow_python_between_operators(profile: Reader) -> None:
    trace = Capture().first().python(90 * US, 650 * US, "train.py(7): augment")
    trace.op(600 * US, 660 * US, "aten::add").work((640, 645), (650, 700))
    read = profile(trace)
    assert causes(read) == {"host-bound": 540, "launch latency": 10}
    assert row_of(read, "host-bound")["line"] == "train.py:7 augment"


def test_backward_after_a_synchronize_of_the_main_thread(profile: Reader) -> None:
    trace = Capture().first().call(30, 105, "cudaStreamSynchronize")
    trace.op(150 * US, 180 * US, "aten::ones_like")
    name = "autograd::engine::evaluate_function: AddBackward0"
    trace.op(200 * US, 260 * US, name, ENGINE).work((250, 255), (260, 300), ENGINE)
    assert causes(profile(trace)) == {
        "sync": 55, "other thread": 30, "host-bound": 65, "launch latency": 10,
    }  # fmt: skip


def test_another_thread_frees_memory_before_the_launch(profile: Reader) -> None:
    trace = Capture().first().op(20 * US, 600 * US, "MulBackward0", ENGINE)
    trace.call(90, 590, "hipFree", ENGINE)
    trace.work((630, 635), (640, 700))
    assert causes(profile(trace)) == {
        "deallocation": 490, "other thread": 10, "host-bound": 30, "launch latency": 10,
    }  # fmt: skip


def test_another_thread_holds_the_interpreter(profile: Reader) -> None:
    trace = Capture().first()
    for at in range(110, 500, 10):
        trace.op(at * US, (at + 8) * US, "aten::sort", WORKER)
    read = profile(trace.work((520, 525), (530, 600)))
    assert causes(read) == {
        "other thread": 39 * 8,
        "host-bound": 420 - 39 * 8,
        "launch latency": 10,
    }


def test_the_place_of_another_threads_time_is_what_that_thread_does(profile: Reader) -> None:
    trace = Capture().first().python(90 * US, 650 * US, "train.py(7): step")
    trace.op(110 * US, 500 * US, "aten::sort", WORKER)
    trace.call(120, 121, "cudaEventRecord", WORKER)
    read = profile(trace.work((520, 525), (530, 600)))
    assert causes(read)["other thread"] == 390
    row = row_of(read, "other thread")
    assert (row["op"], row["line"]) == ("sort", None)


def test_a_busy_thread_of_another_process_is_no_cause(profile: Reader) -> None:
    trace = Capture().first().op(110 * US, 500 * US, "aten::sort", WORKER, pid=200)
    read = profile(trace.work((520, 525), (530, 600)))
    assert causes(read) == {"host-bound": 420, "launch latency": 10}


def export_with(*calls: tuple[str, str, int, int, int]) -> Export:
    """A kernel that ends at 100 us, one launched at 500, and calls: table, name, times, thread."""
    export = Export().launch(0, 10 * US, 1, tid=1).kernel(20 * US, 100 * US, 1)
    export.launch(500 * US, 505 * US, 2, tid=1).kernel(510 * US, 600 * US, 2)
    for table, name, start, end, tid in calls:
        export.row(
            table, start=start * US, end=end * US, globalTid=global_tid(PID, tid),
            nameId=export.string(name),
        )  # fmt: skip
    return export


def test_the_operating_system(profile: Reader) -> None:
    calls = [("OSRT_API", "poll", 110, 400, 1), ("OSRT_API", "read", 420, 450, 1)]
    calls.append(("OSRT_API", "sem_wait", 0, 900, 2))  # of another thread
    read = profile(export_with(*calls))
    assert causes(read) == {"operating system": 320, "host-bound": 80, "launch latency": 10}
    assert row_of(read, "operating system")["call"] == "poll"


def test_a_wait_for_a_running_thread_is_not_the_operating_system(profile: Reader) -> None:
    export = export_with(("OSRT_API", "pthread_cond_wait", 110, 490, 1))
    export.push_pop(120 * US, 480 * US, "aten::sort, op_id = 7", tid=2)
    read = profile(export)
    assert causes(read) == {
        "other thread": 360, "operating system": 20, "host-bound": 20, "launch latency": 10,
    }  # fmt: skip


def switched(export: Export, *times: tuple[int, int]) -> Export:
    """The launching thread leaves its CPU and runs again at some us."""
    for out, back in times:
        for at, scheduled_in in ((out, 0), (back, 1)):
            export.row("SCHED_EVENTS", start=at * US, cpu=1, isSchedIn=scheduled_in,
                       globalTid=global_tid(PID, 1))  # fmt: skip
    return export


def test_a_thread_that_does_not_run(profile: Reader) -> None:
    export = switched(export_with(), (150, 350))
    export.row("SCHED_EVENTS", start=400 * US, cpu=1, isSchedIn=0, globalTid=global_tid(PID, 1))
    assert causes(profile(export)) == {"off CPU": 200, "host-bound": 200, "launch latency": 10}


def test_a_wait_in_the_operating_system_is_not_off_the_cpu(profile: Reader) -> None:
    export = export_with(("OSRT_API", "poll", 140, 260, 1))
    assert causes(profile(switched(export, (150, 250), (300, 350)))) == {
        "operating system": 120, "off CPU": 50, "host-bound": 230, "launch latency": 10,
    }  # fmt: skip


def test_a_thread_is_preempted_inside_an_operator(profile: Reader) -> None:
    export = switched(export_with(), (150, 350))
    export.push_pop(120 * US, 300 * US, "aten::sort, op_id = 7", tid=1)
    read = profile(export)
    assert causes(read) == {"off CPU": 200, "host-bound": 200, "launch latency": 10}
    (gap,) = read.idle(gaps=1).rows()
    assert (gap["cause"], gap["op"]) == ("off CPU", None)  # the operator is open for less than half


def test_a_wait_for_the_gpu_or_another_thread_is_not_off_the_cpu(profile: Reader) -> None:
    export = switched(export_with(), (120, 200), (250, 400))
    export.launch(110 * US, 210 * US, 5, tid=1, name="cudaStreamSynchronize_v3020")
    export.push_pop(260 * US, 380 * US, "aten::sort, op_id = 7", tid=2)
    result = causes(profile(export))
    assert result == {
        "sync": 100, "other thread": 120, "off CPU": 30, "host-bound": 150, "launch latency": 10,
    }  # fmt: skip


def test_gaps_have_the_same_causes_the_second_time(profile: Reader) -> None:
    """The first time, events that overlap no gap are left out."""
    export = switched(export_with(), (120, 200), (250, 400))
    export.push_pop(260 * US, 380 * US, "aten::sort, op_id = 7", tid=2)
    export.push_pop(20 * US, 80 * US, "aten::add, op_id = 5", tid=2)
    read = profile(export)
    host, gaps = Host(read), work_of_device(read).parts.gaps()
    first, again = split(gaps, host), split(gaps, host)
    assert Cause.OTHER_THREAD in first.parts.cause
    assert first.parts.cause.tolist() == again.parts.cause.tolist()
    assert first.parts.ns.tolist() == again.parts.ns.tolist()
    assert first.other.tolist() == again.other.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_off_cpu_is_what_counting_instants_says(profile: Reader, seed: int) -> None:
    """Random operators, calls of the system and switches, by us, of the launching thread."""
    choice = random.Random(seed)
    instants = range(100, 500)
    busy, called, out = (dict.fromkeys(instants, False) for _ in range(3))
    export = export_with()

    def intervals(marks: dict[int, bool]) -> list[tuple[int, int]]:
        starts = sorted(choice.sample(range(100, 480), 6))
        ends = [min(start + choice.randrange(5, 60), 500) for start in starts]
        ends = [min(end, after) for end, after in zip(ends, [*starts[1:], 500], strict=True)]
        pairs = [
            (start, end - 1) for start, end in zip(starts, ends, strict=True) if end > start + 2
        ]
        for start, end in pairs:
            marks.update(dict.fromkeys(range(start, end), True))
        return pairs

    for start, end in intervals(busy):
        export.push_pop(start * US, end * US, "aten::sort, op_id = 7", tid=1)
    for start, end in intervals(called):
        export.row("OSRT_API", start=start * US, end=end * US, globalTid=global_tid(PID, 1),
                   nameId=export.string("poll"))  # fmt: skip
    switched(export, *intervals(out))
    result = causes(profile(export))
    expected = {
        "operating system": sum(called[at] and not busy[at] for at in instants),
        "off CPU": sum(out[at] and not called[at] for at in instants),
    }
    assert {name: result.get(name, 0) for name in expected} == expected


def migrated(*faults: int) -> Export:
    """A migration of unified memory to the CPU at 400 us, and page faults of the CPU at some us."""
    export = export_with()
    export.copy(400 * US, 410 * US, None, 12, 4096)
    for at in faults:
        export.row("CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=at * US, globalPid=global_tid(PID, 0),
                   address=4096, CpuInstruction=0, module=0)  # fmt: skip
    return export


def test_a_page_fault_of_the_cpu(profile: Reader) -> None:
    read = profile(migrated(50, 370, 390, 600))
    assert causes(read) == {
        "page fault": 30, "unknown": 270, "host-bound": 90, "launch latency": 10,
    }  # fmt: skip
    assert "[CUDA_memcpy_unified_DtoH]" in read.to_pandas().kernel.tolist()


def test_a_migration_without_recorded_faults_is_unknown(profile: Reader) -> None:
    assert causes(profile(migrated(90, 405))) == {
        "unknown": 300, "host-bound": 90, "launch latency": 10,
    }  # fmt: skip


# -- what is missing or wrong ----------------------------------------------------------------------


def test_a_launch_that_is_not_in_the_file(profile: Reader) -> None:
    trace = Capture().first()
    trace.kernel(150 * US, 200 * US, 77)
    read = profile(trace)
    assert causes(read) == {"unknown": 50}
    assert read.idle().notes == ()


def test_no_launches_at_all(profile: Reader) -> None:
    read = profile(KinetoFile().kernel(0, 100 * US, 1).kernel(150 * US, 200 * US, 2))
    assert causes(read) == {"unknown": 50}
    assert "no API calls" in read.idle().notes[0]
    assert read.idle().facts["starved"] is None


def test_copies_that_were_not_read(profile: Reader) -> None:
    trace = Capture().first().copied((30, 31), (110, 120), "Memcpy HtoD (Pinned -> Device)")
    read = profile(trace.work((50, 55), (150, 160)))
    assert read.idle().notes == ()
    note = fastprof.open(read.name, copies=False).idle().notes[0]
    assert note.startswith("copies and memsets are missing: their time counts as idle")


def test_clocks_that_differ(profile: Reader) -> None:
    trace = Capture().first().work((170, 175), (150, 200)).work((900, 905), (800, 900))
    read = profile(trace)
    assert causes(read) == {"host-bound": 650}
    assert read.idle().notes == (
        "2 launches start after their work: the clocks of host and GPU differ",
    )


def test_overlapping_work_and_unknown_durations(profile: Reader) -> None:
    trace = Capture().first().work((11, 12), (40, 60)).work((13, 14), (50, 150))
    trace.work((15, 16), (140, 135)).work((160, 165), (170, 180))
    assert causes(profile(trace)) == {"launch-bound": 10, "launch latency": 10}


def test_captures_without_work(profile: Reader) -> None:
    read = profile(Capture().call(0, 10, "cudaMalloc"))
    assert read.idle().n_rows == read.idle(gaps=3).n_rows == 0
    assert "no kernels" in read.idle().notes[0]


@pytest.mark.parametrize("kernels", [0, 1])
def test_a_capture_without_gaps(profile: Reader, kernels: int) -> None:
    trace = Capture().first()
    for _ in range(kernels):
        trace.work((50, 60), (100, 120))
    table = profile(trace).idle()
    assert (table.n_rows, table.total["ns"]) == (0, 0)


def test_an_unclosed_loader_range(profile: Reader) -> None:
    export = export_with().push_pop(110 * US, None, LOADER, tid=1)
    assert causes(profile(export))["data loading"] == 395


# -- tables ----------------------------------------------------------------------------------------


def several(trace: Capture) -> Capture:
    """Two steps with a gap of 190 and two of 20 us, of which one is on GPU 1."""
    for step, at in enumerate((0, 1000)):
        trace.annotation(at * US, (at + 900) * US, f"ProfilerStep#{step}")
        trace.annotation(at * US, (at + 450) * US, "forward")
        trace.work((at, at + 5), (at + 10, at + 100))
        trace.work((at + 250, at + 255), (at + 290, at + 400))
        trace.work((at + 405, at + 408), (at + 420, at + 500), kernel="last")
    return trace.work((20, 25), (30, 40), device=1).work((43, 44), (60, 70), device=1)


def test_gaps_under_a_threshold_are_a_row(profile: Reader) -> None:
    read = profile(several(Capture()))
    rows = {(row["device"], row["cause"]): row for row in read.idle(min=21).rows()}
    assert rows[0, "short gaps"]["ns"] == 40 * US
    assert (rows[0, "short gaps"]["gaps"], rows[0, "short gaps"]["longest_ns"]) == (2, 20 * US)
    assert rows[1, "short gaps"]["ns"] == 20 * US
    assert sum(row["ns"] for row in rows.values()) == read.idle().total["ns"]


def test_a_line_is_that_of_the_host_in_the_gap_not_of_the_next_work() -> None:
    read = fastprof.open(RECORDED / "traces" / "cv.json.gz")
    first = next(iter(read.idle(by="line").rows()))
    # x, y = next(batches) is line 49; the copy that ends the gap is launched in line 50.
    assert (first["line"], first["cause"], first["gaps"]) == (
        "programs/cv.py:49", "data loading", 3,
    )  # fmt: skip
    listed = [row["ns"] for row in read.idle(gaps=3).rows() if row["line"] == first["line"]]
    assert first["ns"] == sum(listed)


def test_rows_by_step_range_and_line(profile: Reader) -> None:
    read = profile(several(Capture()))
    rows = list(read.idle(by="step").rows())
    assert [(row["step"], row["device"], row["ns"] // US, row["gaps"]) for row in rows] == [
        (0, 0, 210, 2), (0, 1, 20, 1), (1, 0, 210 + 510, 3),
    ]  # fmt: skip
    rows = list(read.idle(by="range").rows())
    assert [row["range"] for row in rows] == ["ProfilerStep#*:forward"] * 2
    assert rows[0]["cause"] == "host-bound"
    assert [row["line"] for row in read.idle(by="line").rows()] == [None, None]
    total = read.idle().total
    assert all(read.idle(by=key).total == total for key in ("step", "range", "line", "layer"))


def test_the_longest_gaps(profile: Reader) -> None:
    table = profile(several(Capture())).idle(gaps=2)
    rows = list(table.rows())
    assert [row["ns"] // US for row in rows] == [510, 190]
    assert (rows[0]["at_ns"], rows[0]["start_ns"]) == (490 * US, 500 * US)
    assert (rows[0]["before"], rows[0]["after"], rows[0]["step"]) == ("last", "gemm", 1)
    assert rows[0]["cause"] == "host-bound"
    assert table.total == {"ns": 700 * US}


def test_the_time_line_in_parts(profile: Reader) -> None:
    trace = Capture().first()
    trace.work((30, 31), (90, 150), stream=8, kernel="ncclDevKernel_AllReduce")
    trace.copied((32, 33), (140, 180), "Memcpy HtoD (Pinned -> Device)")
    trace.work((34, 35), (200, 210))
    table = profile(trace).idle()
    assert table.facts["gpus"] == [
        {
            "device": 0, "span_ns": 190 * US, "busy_ns": 170 * US, "idle_ns": 20 * US,
            "compute_ns": 90 * US, "communication_ns": 60 * US,
            "exposed_communication_ns": 50 * US, "exposed_copy_ns": 30 * US,
            "overlap": pytest.approx(1 / 6),
        }
    ]  # fmt: skip
    assert table.lead[0] == (
        "GPU 0, 190 us: compute 90 us, exposed communication (17% hidden) 50 us, "
        "exposed copies 30 us, idle 20 us, 10.5%"
    )


def test_errors(profile: Reader, tmp_path: Path) -> None:
    read = profile(Capture().first())
    with pytest.raises(ReportError, match="expected by to be one of cause, step"):
        read.idle(by="op")
    with pytest.raises(ReportError, match="invalid regular expression"):
        profile(several(Capture())).idle(data="(")
    for words, text in (
        (["--min", "x"], b"expected microseconds, 0 or more, found 'x'"),
        (["--min", "nan"], b"expected microseconds, 0 or more, found 'nan'"),
        (["--gaps", "0"], b"expected a positive number, found '0'"),
        (["--by", "op"], b"expected cause or step or range or line or layer, found 'op'"),
    ):
        done = run("idle", tmp_path / "x.json", *words)
        assert done.returncode == 2
        assert text in done.stderr
