"""`overlap` on small traces with figures by hand, and on random intervals."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.analysis.gpu_work import TimeLine
from support.commands import run
from support.exports import Export
from support.kineto_files import KinetoFile

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SIZES = {
    "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000,
    "Out msg nelems": 1000, "Group size": 4, "Process Group Name": "0",
    "Process Group Description": "default_pg",
}  # fmt: skip
COMM = 20  # the stream of communication


def collective(
    trace: KinetoFile, at: int, corr: int, *kernels: tuple[int, int], **sizes: Any
) -> None:
    """A call with the profiler's record, and its kernels."""
    trace.op(at, at + 30, "c10d::allreduce_", dims=[[]], types=["TensorList"])
    trace.op(at + 1, at + 29, "record_param_comms", **(SIZES | sizes))
    for i, (start, end) in enumerate(kernels):
        trace.launch(at + 5 + 4 * i, at + 7 + 4 * i, corr + i)
        trace.kernel(start, end, corr + i, NCCL, stream=COMM)


def small() -> KinetoFile:
    """Compute 100-200, 300-400; collectives 150-250, 240-350, 500-600; copy 440-520; set 700-710.

    The first two overlap in 240-250, which counts for the first. The last has two kernels.
    """
    trace = KinetoFile().kernel(100, 200, 1).kernel(300, 400, 2)
    collective(trace, 0, 10, (150, 250))
    collective(trace, 40, 20, (240, 350), **{"In msg nelems": 500, "Out msg nelems": 500})
    collective(trace, 80, 30, (500, 560), (560, 600))
    trace.copy(440, 520, 3, "Memcpy HtoD (Pinned -> Device)", 8)
    trace.copy(700, 710, 4, "Memset (Device)", 8)
    return trace


def test_the_time_of_a_gpu_is_divided(opened):
    table = opened(small()).overlap()
    assert table.facts["gpus"] == [
        {
            "device": 0, "span_ns": 610, "compute_ns": 200, "communication_ns": 300,
            "exposed_communication_ns": 200, "exposed_copy_ns": 70, "idle_ns": 140,
            "hidden_ns": 100, "hidden_share": 100 / 300,
        }
    ]  # fmt: skip
    assert table.lead[1].split() == ["0", "610", "200", "200", "70", "140", "300", "33.3"]


def test_each_moment_counts_for_the_collective_that_started_first(opened):
    table = opened(small()).overlap()
    common = {
        "collective": "all_reduce", "process_group": "0 default_pg", "group_size": 4,
        "message_type": "fp32", "stream": COMM, "step_exposed_ns": None,
    }  # fmt: skip
    large = {
        "message_bytes": 4000, "calls": 2, "kernels": 3, "time_ns": 200, "mean_ns": 100,
        "exposed_ns": 150, "hidden_ns": 50, "hidden_share": 0.25,
        "bytes": 8000, "in_bytes": 8000, "out_bytes": 8000,
        "algorithm_bytes_per_s": 40e9, "bus_bytes_per_s": 60e9,
    }  # fmt: skip
    less = {
        "message_bytes": 2000, "calls": 1, "kernels": 1, "time_ns": 110, "mean_ns": 110,
        "exposed_ns": 50, "hidden_ns": 50, "hidden_share": 0.5,
        "bytes": 2000, "in_bytes": 2000, "out_bytes": 2000,
        "algorithm_bytes_per_s": 2000 / 110e-9, "bus_bytes_per_s": 3000 / 110e-9,
    }  # fmt: skip
    rows = list(table.rows())
    assert rows == [common | {key: pytest.approx(value) for key, value in row.items()}
                    for row in (large, less)]  # fmt: skip
    assert table.total == {
        "calls": 3, "kernels": 4, "time_ns": 310, "exposed_ns": 200, "hidden_ns": 100,
        "hidden_share": pytest.approx(1 / 3), "step_exposed_ns": None,
        "bytes": 10000, "in_bytes": 10000, "out_bytes": 10000,
    }  # fmt: skip
    assert any(note.startswith("10 ns of communication at the same time") for note in table.notes)


def test_rows_by_other_keys_and_of_selected_work(opened):
    profile = opened(small())
    by = {
        row["message_bytes"]: row["exposed_ns"] for row in profile.overlap("message_bytes").rows()
    }
    assert by == {4000: 150, 2000: 50}
    table = profile.overlap(by=["op"], where={"message_bytes": "2000"})
    assert (table.total["exposed_ns"], table["op"].tolist()) == (50, ["allreduce_"])
    assert table.lead == ()
    assert "gpus" not in table.facts
    names = ("collective", "process_group", "group_size", "message_bytes", "message_type")
    (*rows,) = profile.summary(by=names).rows()
    assert {tuple(row[name] for name in names): row["kernels"] for row in rows} == {
        ("all_reduce", "0 default_pg", 4, 4000, "fp32"): 3,
        ("all_reduce", "0 default_pg", 4, 2000, "fp32"): 1,
        (None, None, None, None, None): 4,
    }
    with pytest.raises(fastprof.ReportError, match="did you mean collective"):
        profile.overlap(by="colective")


def test_exposed_time_per_step(opened):
    trace = KinetoFile().launch(10, 20, 1).kernel(30, 50, 1)
    for number in range(2):
        at = 1000 * number + 1000
        trace.annotation(at, at + 900, f"ProfilerStep#{number}")
        collective(trace, at + 10, 10 + number, (at + 500, at + 600 + 100 * number))
    table = opened(trace).overlap()
    assert table["step_exposed_ns"].tolist() == [150]
    assert opened(trace).overlap(by="step")["exposed_ns"].tolist() == [200, 100]


def test_each_gpu_has_its_own_time_line(opened):
    trace = Export()
    for device in (1, 0):
        trace.kernel(100, 200 + 100 * device, 1 + device, device=device)
        trace.kernel(150, 250, 3 + device, name=NCCL, device=device, stream=COMM)
    table = opened(trace).overlap()
    result = [(each["device"], each["hidden_ns"]) for each in table.facts["gpus"]]
    assert result == [(0, 50), (1, 100)]
    assert table["device"].tolist() == [0, 1]
    assert table["exposed_ns"].tolist() == [50, 0]


def note_of(table: Any, word: str) -> str:
    (note,) = [note for note in table.notes if word in note]
    return str(note)


def test_communication_on_the_stream_of_the_compute_is_reported(opened):
    trace = Export().kernel(0, 100, 1, stream=7)
    trace.kernel(100, 130, 2, name=NCCL, stream=7).kernel(120, 130, 3, name=NCCL, stream=COMM)
    table = opened(trace).overlap()
    assert note_of(table, "cannot overlap").startswith(
        "GPU 0: 75% of the communication runs on stream 7"
    )


def test_a_helper_on_the_stream_of_the_communication_is_not_reported(opened):
    trace = Export().kernel(0, 100, 1, stream=7).kernel(100, 105, 2, stream=COMM)
    trace.kernel(110, 130, 3, name=NCCL, stream=COMM)
    assert not [note for note in opened(trace).overlap().notes if "cannot" in note]


def test_unknown_sizes_and_ranks_are_reported(opened, tmp_path):
    trace = Export().push_pop(0, 20, "c10d::allreduce_, seq = 1, sizes = [[1000]]", 1)
    trace.launch(5, 10, 1, 1).kernel(100, 150, 1, name=NCCL)
    table = opened(trace).overlap()
    assert note_of(table, "number of ranks")
    assert not [note for note in table.notes if "message sizes" in note]
    (row,) = table.rows()
    assert (row["message_bytes"], row["bus_bytes_per_s"]) == (4000, None)
    trace.kernel(200, 250, 2, name=GATHER)
    (tmp_path / "two").mkdir()
    table = opened(trace).overlap()
    assert note_of(table, "message sizes known for 50.0% of the communication time")


def test_kernels_without_a_launch_need_an_earlier_recording(opened):
    trace = small().kernel(1000, 1400, 99, NCCL, stream=COMM)
    note = note_of(opened(trace).overlap(), "message sizes")
    assert "43.7%" in note
    assert note.endswith("start the recording earlier")


def test_barriers_have_no_size_and_lack_none(opened):
    trace = KinetoFile()
    none = {"In msg nelems": 0, "Out msg nelems": 0}
    collective(trace, 0, 10, (150, 250), **none, **{"Collective name": "barrier"})
    table = opened(trace).overlap()
    assert table["collective"].tolist() == ["barrier"]
    assert [note for note in table.notes if "size" in note or "ranks," in note] == []


def test_graphs_without_kernels_and_impossible_durations_are_counted(opened):
    trace = Export().graph_trace(0, 100, 1).kernel(50, 150, 2, name=NCCL)
    trace.kernel(300, 200, 3, name=NCCL)
    table = opened(trace).overlap()
    assert table.total["hidden_ns"] == table.total["exposed_ns"] == 50
    assert note_of(table, "1 CUDA graphs recorded without their kernels")
    assert note_of(table, "1 communication kernels with an impossible duration")


def test_without_communication_the_table_is_empty(tmp_path):
    path = KinetoFile().kernel(100, 200, 1).write(tmp_path / "one.json")
    table = fastprof.open(path).overlap()
    assert table.n_rows == 0
    assert table.notes[0].startswith("no communication kernels")
    assert table.facts["gpus"][0]["hidden_share"] is None
    done = run("overlap", path)
    assert (done.returncode, done.stderr) == (0, b"")


def moments(intervals: Iterable[tuple[int, int]]) -> set[int]:
    return {time for start, length in intervals for time in range(start, start + length)}


INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=8)


@given(compute=INTERVALS, communication=INTERVALS)
def test_random_intervals(compute, communication, tmp_path_factory):
    trace = Export()
    for start, length in compute:
        trace.kernel(start, start + length, None)
    for i, (start, length) in enumerate(communication):
        trace.kernel(start, start + length, None, name=NCCL, stream=100 + i)
    if not compute and not communication:
        return
    path = trace.write(tmp_path_factory.mktemp("random") / "one.sqlite")
    table = fastprof.open(path, copies=True).overlap(by="stream")
    busy, taken = moments(compute), set[int]()
    expected = {}
    for i, each in sorted(enumerate(communication), key=lambda pair: pair[1][0]):
        own = moments([each]) - taken
        taken |= own
        expected[100 + i] = (len(own - busy), len(own & busy))
    rows = {row["stream"]: (row["exposed_ns"], row["hidden_ns"]) for row in table.rows()}
    assert rows == expected
    (gpu,) = table.facts["gpus"]
    assert gpu["idle_ns"] == gpu["span_ns"] - len(busy | taken)


def test_a_time_line_without_communication_has_no_share():
    assert TimeLine(10, 5, 0, 0, 0, 5).hidden_share is None
