"""What sums of tables count: steps and GPUs, work outside of counted steps, overlapping work."""

from pathlib import Path

import pytest

import fastprof
from support.exports import PID, Export

STEP, BEFORE = 100_000, 40_000  # ns


class Run:
    """Steps of processes, each on its GPUs; a step of one GPU is a product, an all-reduce and idle
    time."""

    def __init__(self) -> None:
        self.export, self._correlation = Export(), 0

    def kernel(self, at: int, ns: int, name: str, pid: int = PID, device: int = 0, **others: int):
        """A kernel, launched as it starts."""
        self._correlation += 1
        self.export.launch(at - 10, at - 5, self._correlation, tid=1, pid=pid)
        self.export.kernel(
            at, at + ns, self._correlation, name=name, pid=pid, device=device, **others
        )

    def steps(self, pid: int, devices: list[int], n: int = 4) -> None:
        """Steps of a process."""
        for number in range(n):
            start = BEFORE + number * STEP
            self.export.push_pop(start, start + STEP - 1_000, f"step {number}", tid=1, pid=pid)
            for device in devices:
                self.kernel(start + 1_000, 30_000, "sgemm", pid, device)
                self.kernel(start + 31_000, 50_000, "ncclDevKernel_AllReduce", pid, device)

    def write(self, path: Path) -> fastprof.Profile:
        return fastprof.open(self.export.write(path), copies=True)


@pytest.mark.parametrize(
    ("processes", "n_gpus"),
    [({1: [0]}, 1), ({1: [0], 2: [1]}, 2), ({1: [0, 1]}, 2), ({1: [0], 2: [1, 2], 3: [3]}, 4)],
)
def test_a_time_per_step_is_that_of_one_gpu(processes, n_gpus, tmp_path):
    """However many processes and GPUs: rows compare with the length of a step."""
    run = Run()
    for pid, devices in processes.items():
        run.kernel(1_000, 500, "warm_up", pid, devices[0])
        run.steps(pid, devices)
    profile = run.write(tmp_path / "run.sqlite")
    steps = profile.find_steps()
    assert steps.is_counted.tolist() == [True] * 4 * len(processes)
    for table in (profile.summary("kernel"), profile.overview()["ops"]):
        rows = {row["gpu_ns"]: row for row in table.rows()}
        row = rows[4 * n_gpus * 50_000]
        assert row["step_ns"] == pytest.approx(50_000)
        assert row["step_share"] == pytest.approx(50 / 80)
        assert sum(row["step_ns"] for row in rows.values()) <= STEP
        header = next(heading.header for heading in table.headings if heading.key == "gpu_ns")
        assert header == ("gpu" if n_gpus == 1 else f"{n_gpus} GPUs")
    exposed = [row["step_exposed_ns"] for row in profile.overlap().rows()]
    assert sum(exposed) == pytest.approx(50_000)
    (row,) = profile.layers().rows()
    assert row["step_ns"] == pytest.approx(80_000)
    note = f"step: mean per step and GPU; other times of rows are sums over {n_gpus} GPUs"
    for table in (profile.summary(), profile.layers(), profile.lines()):
        assert (note in table.notes) == (n_gpus > 1)
    assert (note in profile.overview().text()) == (n_gpus > 1)


def test_gpus_without_steps_are_summed_and_named(tmp_path):
    run = Run()
    for device in (0, 1):
        run.kernel(1_000, 5_000, "sgemm", device=device)
    profile = run.write(tmp_path / "run.sqlite")
    text = profile.summary("kernel").text()
    assert "2 GPUs(us)" in text and "times of rows are sums over 2 GPUs" in text


def test_shares_are_of_the_time_beside_them(tmp_path):
    """Work before the steps is in no time per step, and a note says how much it is."""
    run = Run()
    run.kernel(1_000, 20_000, "warm_up")
    run.steps(PID, [0])
    profile = run.write(tmp_path / "run.sqlite")
    time, counted = 4 * 80_000 + 20_000, profile.find_steps().is_counted
    assert counted.all()
    rows = {row["kernel"]: row for row in profile.summary("kernel").rows()}
    assert rows["warm_up"]["share"] == pytest.approx(20_000 / time)
    assert (rows["warm_up"]["step_ns"], rows["warm_up"]["step_share"]) == (0, 0)
    assert rows["sgemm"]["step_share"] == pytest.approx(30 / 80)
    note = "outside of counted steps: 20 us of GPU time, 6%: in no step"
    for table in (profile.summary("kernel"), profile.layers(), profile.lines()):
        assert note in table.notes
    assert note in profile.overview().text()
    assert note not in profile.report("summary", where="kernel=sgemm").notes
    shown = [heading.key for heading in profile.summary("kernel").headings if heading.in_text]
    assert "step_share" in shown and "share" not in shown


def test_a_slow_first_step_is_told_too(tmp_path):
    run = Run()
    run.steps(PID, [0])
    run.export.push_pop(-10 * STEP, 0, "step 9", tid=1)
    run.kernel(-9 * STEP, 7 * STEP, "sgemm")
    profile = run.write(tmp_path / "run.sqlite")
    assert profile.find_steps().is_counted.tolist() == [False, True, True, True, True]
    note = "outside of counted steps: 700 us of GPU time, 69%: in other steps"
    assert note in profile.summary().notes


def test_overlapping_work_is_told_with_both_figures(tmp_path):
    run = Run()
    run.kernel(1_000, 100_000, "sgemm")
    run.kernel(21_000, 20_000, "sgemm", stream=8)
    profile = run.write(tmp_path / "run.sqlite")
    note = "kernels overlap on streams: the rows sum to 120 us, the GPU is busy 100 us"
    for table in (profile.summary(), profile.layers(), profile.lines(), profile.report("ranges")):
        assert table.total["gpu_ns"] == 120_000
        assert note in table.notes
    assert note in profile.overview().text()
    alone = Run()
    alone.kernel(1_000, 100_000, "sgemm")
    alone.kernel(101_000, 20_000, "sgemm", stream=8)
    notes = alone.write(tmp_path / "alone.sqlite").summary().notes
    assert not [note for note in notes if "overlap" in note]


def test_gpus_that_work_at_the_same_time_do_not_overlap(tmp_path):
    """Also if each process counts its GPU as 0."""
    run = Run()
    for pid in (1, 2):
        run.kernel(1_000, 100_000, "sgemm", pid=pid)
    notes = run.write(tmp_path / "run.sqlite").summary().notes
    assert not [note for note in notes if "overlap" in note]
    assert "times of rows are sums over 2 GPUs" in notes


def test_a_step_has_the_busy_time_of_the_screen(tmp_path):
    run = Run()
    run.steps(PID, [0])
    for number in range(4):
        run.kernel(BEFORE + number * STEP + 2_000, 10_000, "sgemm", stream=8)
    table = run.write(tmp_path / "run.sqlite").summary()
    notes = [note for note in table.notes if note.startswith("kernels overlap on streams")]
    assert notes == [
        "kernels overlap on streams: the rows sum to 90 us per step, the GPU is busy 80 us"
    ]
    assert table.facts["step_busy_ns"] == 80_000
