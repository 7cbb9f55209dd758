"""`steps` on small traces with figures by hand."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from bench.generate import generate

import fastprof
from support.commands import run
from support.kineto_files import PID, KinetoFile

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def two_steps() -> KinetoFile:
    """Steps of 450 and 750 ns on GPU 0.

    The second step ends at 1200. Kernel, communication and copy overlap in the first, kernel and
    copy in the second.
    """
    trace = KinetoFile()
    trace.annotation(0, 1000, "ProfilerStep#1").annotation(1000, 2000, "ProfilerStep#2")
    trace.annotation(5, 50, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    trace.launch(60, 70, 1, name="cudaMalloc")
    for corr, start in ((2, 80), (3, 90), (4, 95), (6, 1010), (7, 1020)):
        trace.launch(start, start + 3, corr)
    trace.launch(460, 900, 5, name="cudaDeviceSynchronize")
    trace.kernel(100, 300, 2).kernel(250, 400, 3, NCCL, stream=8).copy(380, 450, 4, "Memset", 8)
    trace.kernel(1100, 1200, 6).copy(1150, 1180, 7, "Memset", 8)
    return trace


def rows_of(trace: KinetoFile, path: Path, **options: Any) -> list[dict[str, Any]]:
    return list(opened(trace, path).steps(**options).rows())


def opened(trace: KinetoFile, path: Path) -> fastprof.Profile:
    return fastprof.open(trace.write(path / "steps.json"), copies=True)


NO_COUNTERS = dict.fromkeys(("sm_clock_hz", "sm_active", "tensor_active", "dram", "nvlink"))
FIRST = {
    "step": 1, "device": 0, "pid": PID, "wall_ns": 450, "busy_ns": 350, "compute_ns": 200,
    "communication_ns": 150, "exposed_communication_ns": 100, "hidden_communication_ns": 50,
    "copy_ns": 70, "exposed_copy_ns": 50, "idle_ns": 100, "sync_ns": 440, "data_loading_ns": 45,
    "alloc_ns": 10, "host_ns": 1000, "kernels": 3, "flops": 0, "mfu": None, **NO_COUNTERS,
    "is_counted": 0, "flag": "cut",
}  # fmt: skip
SECOND = FIRST | {
    "step": 2, "wall_ns": 750, "busy_ns": 100, "compute_ns": 100, "communication_ns": 0,
    "exposed_communication_ns": 0, "hidden_communication_ns": 0, "copy_ns": 30,
    "exposed_copy_ns": 0, "idle_ns": 650, "sync_ns": 0, "data_loading_ns": 0, "alloc_ns": 0,
    "kernels": 2, "is_counted": 1, "flag": "",
}  # fmt: skip


def test_a_row_divides_the_time_of_a_step(tmp_path):
    assert rows_of(two_steps(), tmp_path) == [FIRST, SECOND]


def test_text_names_the_gpu_only_among_several(tmp_path):
    one = opened(two_steps(), tmp_path).steps().text()
    assert " gpu " not in one
    assert "pid" not in one
    trace = two_steps().launch(1030, 1033, 8).kernel(1300, 1350, 8, device=1)
    table = opened(trace, tmp_path).steps()
    assert table["device"].tolist() == [0, 1, 0, 1]
    # Both GPUs have the windows of their process.
    assert table["wall_ns"].tolist() == [450, 450, 900, 900]
    assert table["busy_ns"].tolist() == [350, 0, 100, 50]
    lines = table.text().splitlines()
    assert any(line.startswith("GPU 1: step 900 ns") for line in lines)
    assert any(line.split()[:2] == ["step", "gpu"] for line in lines)


def test_where_selects_the_work_that_counts_and_its_steps(tmp_path):
    (row,) = rows_of(two_steps(), tmp_path, where="kind=communication")
    wanted = {"step": 1, "wall_ns": 450, "busy_ns": 150, "exposed_communication_ns": 150,
              "idle_ns": 300, "kernels": 1}  # fmt: skip
    assert {key: row[key] for key in wanted} == wanted
    assert rows_of(two_steps(), tmp_path, where="device=3") == []


def test_without_steps_the_capture_is_one_row(tmp_path):
    table = opened(two_steps(), tmp_path).steps(steps="none")
    assert [table[name].tolist() for name in ("wall_ns", "busy_ns", "idle_ns", "kernels")] == [
        [1100], [450], [650], [5],
    ]  # fmt: skip
    assert table.lead[1].startswith("capture 1.1 us: compute 300 ns")


def test_the_first_step_by_repetition_starts_at_its_first_work(tmp_path):
    trace = KinetoFile()
    for i in range(8):  # two kernels per step
        trace.launch(500 * i, 500 * i + 5, i + 1)
        trace.kernel(500 * i + 300, 500 * i + 400, i + 1, f"k{i % 2}")
    table = opened(trace, tmp_path).steps(steps="repetition")
    assert table["wall_ns"].tolist() == [600, 1000, 1000, 1000]
    assert table["flag"].tolist() == ["cut", "", "", ""]
    assert table.facts["lengths"][0]["mean_ns"] == 1000
    assert table.notes[0].startswith("means exclude step 1: the GPU work before it is not recorded")


def steps_of(*lengths: int, late: int = -1) -> KinetoFile:
    """Steps of these lengths, of which one has a long kernel and the others 100 ns."""
    trace, at = KinetoFile(), 0
    for i, length in enumerate(lengths):
        trace.annotation(at, at + length, f"ProfilerStep#{i}")
        trace.op(at, at + 50, "aten::mm")
        trace.launch(at + 5, at + 10, i + 1)
        trace.kernel(at + length - (length - 20 if i == late else 100), at + length, i + 1)
        at += length
    return trace


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((1000, 1000, 1000, 1400), [3]),
        ((1000, 1000, 1000, 1000, 1000, 1000, 1400, 700), [6, 7]),
        ((1000, 1000, 1000, 1000, 1400, 1400, 1400), []),  # more than a third
        ((1000, 1010, 990, 1090), []),  # within 10 %
        ((1000, 1200, 800, 1400), []),  # within 5 median deviations
        ((1000, 1400), []),
        ((3000, 1000, 1000, 1000), []),  # a warm-up
    ],
)
def test_outliers_are_far_from_the_median(lengths, expected, tmp_path):
    flags = opened(steps_of(*lengths), tmp_path).steps()["flag"].tolist()
    assert [i for i, flag in enumerate(flags) if flag == "outlier"] == expected


def test_an_outlier_is_compared_with_the_mean_of_the_others(tmp_path):
    table = opened(steps_of(1000, 1000, 1030, 1400, late=3), tmp_path).steps()
    (result,) = table.facts["outliers"]
    assert (result["step"], result["device"], result["over_ns"]) == (3, 0, 385)
    assert result["changes"]["compute_ns"] == 1280
    assert result["changes"]["idle_ns"] == -895
    assert result["ops"] == {"mm fprop": 1280}
    assert table.lead[2] == (
        "outlier: step 3 takes 1.4 us, 385 ns over the mean of the others: compute +1.28 us, "
        "idle -895 ns (short gaps -895 ns); "
        "GPU time: mm fprop +1.28 us"
    )
    assert sum(result["causes"].values()) == pytest.approx(-895)


def test_clocks_that_differ_give_no_negative_times(tmp_path):
    trace = KinetoFile()
    for i, corr in ((0, 1), (1, 2)):
        trace.annotation(9000 + 1000 * i, 10_000 + 1000 * i, f"ProfilerStep#{i}")
        trace.launch(9100 + 1000 * i, 9110 + 1000 * i, corr)
        trace.kernel(100 + 1000 * i, 200 + 1000 * i, corr)
    trace.kernel(150, 250, 99)
    table = opened(trace, tmp_path).steps()
    assert table["wall_ns"].tolist() == [100, 1000]
    assert table["idle_ns"].tolist() == [0, 850]
    assert any("clocks differ: 2 kernels and copies start" in note for note in table.notes)
    assert "launch not recorded: 1 kernels and copies" in table.notes
    assert "outside of all steps: 1 kernels and copies, busy time where they run" in table.notes
    assert any("overlap on one stream: 1 kernels and copies" in note for note in table.notes)


def test_processes_with_the_same_gpu_number_have_rows_of_their_own(tmp_path):
    trace = two_steps()
    for start, number in ((0, 1), (1000, 2)):
        trace.op(start, start + 1000, f"ProfilerStep#{number}", pid=200, cat="user_annotation")
    for start, corr in ((100, 21), (1100, 22)):
        trace.launch(start, start + 5, corr, pid=200, tid=9)
        trace.kernel(start + 500, start + 600, corr)
    table = opened(trace, tmp_path).steps()
    columns = (table[name].tolist() for name in ("step", "pid", "wall_ns", "busy_ns", "kernels"))
    assert list(zip(*columns, strict=True)) == [
        (1, 100, 450, 350, 3), (1, 200, 700, 100, 1), (2, 100, 750, 100, 2), (2, 200, 1000, 100, 1),
    ]  # fmt: skip
    assert any("processes use the same GPU numbers" in note for note in table.notes)


def test_a_file_without_work_gives_a_reason(tmp_path):
    cpu_only = KinetoFile().annotation(0, 10, "ProfilerStep#1").op(1, 5, "aten::mm")
    table = opened(cpu_only, tmp_path).steps()
    assert (table.n_rows, len(table.notes)) == (0, 1)
    assert table.notes[0].startswith("no kernels: profile(activities=")


def test_host_times_are_unknown_without_api_calls(tmp_path):
    trace = KinetoFile().kernel(100, 200, 1)
    (row,) = rows_of(trace, tmp_path)
    assert [row[name] for name in ("sync_ns", "data_loading_ns", "alloc_ns")] == [None] * 3
    notes = opened(trace, tmp_path).steps().notes
    assert any(note.startswith("host times unknown: no API calls in the file") for note in notes)


def test_the_command_takes_a_pattern_of_ranges(tmp_path):
    generate(tmp_path / "net.sqlite", 4000, 1)
    result = []
    for words in (["--step-range", "^iter"], ["--steps", "range:^iter"]):
        done = run("steps", tmp_path / "net.sqlite", "--json", *words)
        assert done.returncode == 0, done.stderr.decode()
        result.append(json.loads(done.stdout))
    assert result[0] == result[1]
    assert result[0]["steps"]["source"] == "range:^iter"
    assert {"step", "wall_ns", "busy_ns", "idle_ns", "exposed_communication_ns",
            "exposed_copy_ns"} <= result[0]["rows"][0].keys()  # fmt: skip
    done = run("steps", tmp_path / "net.sqlite", "--step-range", "x", "--steps", "none")
    assert done.returncode == 2
    assert b"argument --steps: not allowed with argument --step-range" in done.stderr


def test_mfu_is_that_of_summary_by_the_length_on_the_gpu(tmp_path):
    generate(tmp_path / "net.sqlite", 6000, 1)
    profile = fastprof.open(tmp_path / "net.sqlite", copies=True)
    steps, table = profile.find_steps(), profile.steps()
    of_summary = [step["mfu"] for step in profile.summary().facts["utilisation"]["steps"]]
    expected = of_summary * steps.length / table["wall_ns"]
    assert len(expected) > 2
    assert table["mfu"] == pytest.approx(expected)
    assert table["flops"].sum() == profile.kernels["flops"][steps.of_kernel >= 0].sum()


@pytest.mark.parametrize("seed", range(8))
def test_any_times_add_up(seed, tmp_path):
    """Random work of two GPUs, some without a launch; each moment counts once."""
    random.seed(seed)
    trace, work = KinetoFile(), []
    for i in range(5):
        trace.annotation(100 * i, 100 * i + 90, f"ProfilerStep#{i}")
    for corr in range(60):
        launch, device = random.randrange(500), random.randrange(2)
        start, length = launch + random.randrange(60), random.randrange(40)
        kind = random.choice(("compute", "communication", "copy"))
        if random.random() < 0.9:
            trace.launch(launch, launch + 2, corr)
        name = {"compute": "sgemm", "communication": NCCL, "copy": "Memset (Device)"}[kind]
        if kind == "copy":
            trace.copy(start, start + length, corr, name, 8)
            device = 0
        else:
            trace.kernel(start, start + length, corr, name, device=device, stream=corr)
        work.append((device, start, start + length, kind))
    profile = opened(trace, tmp_path)
    begin = dict.fromkeys((0, 1), None)
    for row in profile.steps().rows():
        if row["wall_ns"] is None:
            continue
        steps = profile.find_steps()
        i = steps.number.tolist().index(row["step"])
        end = max(steps.gpu_end[: i + 1].tolist())
        expected = dict.fromkeys(("busy_ns", "compute_ns", "exposed_communication_ns",
                                  "exposed_copy_ns", "idle_ns"), 0)  # fmt: skip
        for time in range(end - row["wall_ns"], end):
            runs = {k for device, a, b, k in work if device == row["device"] and a <= time < b}
            expected["busy_ns"] += bool(runs)
            expected["idle_ns"] += not runs
            expected["compute_ns"] += "compute" in runs
            expected["exposed_communication_ns"] += "communication" in runs - {"compute"} and (
                "compute" not in runs
            )
            expected["exposed_copy_ns"] += runs == {"copy"}
        assert {key: row[key] for key in expected} == expected
        last = begin[row["device"]]
        assert last is None or last == end - row["wall_ns"]
        begin[row["device"]] = end
