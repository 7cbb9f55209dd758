"""Start-up that is left out of the answer, and parts of a capture."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import fastprof
from commands import run
from exports import Export
from fastprof import StepsError
from fastprof.profile.steps.startup import _is_startup

MS = 1_000_000
Make = Callable[[Export], fastprof.Profile]


@pytest.fixture
def opened(tmp_path: Path) -> Make:
    return lambda export: fastprof.open(export.write(tmp_path / "part.sqlite"), copies=True)


class Program(Export):
    """Work that the host launches as the GPU begins it, 1 ms apart."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.corr = MS, 0

    def work(self, n: int, name: str = "sgemm") -> None:
        """Kernels of 0.5 ms with a name each, so that nothing repeats."""
        for _ in range(n):
            self._launch()
            self.kernel(self.now, self.now + MS // 2, self.corr, name=f"{name}_{self.corr}")
            self.now += MS

    def uploads(self, n: int) -> None:
        for _ in range(n):
            self._launch()
            self.copy(self.now, self.now + MS * 9 // 10, self.corr, 1, 1 << 20)
            self.now += MS

    def _launch(self) -> None:
        self.corr += 1
        self.launch(self.now - 10, self.now - 5, self.corr, tid=1)

    def range(self, name: str, n: int, what: Callable[[int], None] | None = None) -> None:
        start = self.now - 100
        (what or self.work)(n)
        self.push_pop(start, self.now - 200, name, tid=1)


def test_what_follows_named_start_up_is_the_answer(opened: Make) -> None:
    program = Program()
    program.range("init_model", 20, program.uploads)
    program.range("warmup", 10)
    program.range("benchmark", 30)
    profile = opened(program)
    steps = profile.find_steps()
    assert (steps.source, steps.unit) == ("steady", "steady part")
    assert steps.left_out.startswith("capture of 59.5 ms: start-up 30 ms (init_model, warmup)")
    assert (steps.of_kernel < 0).sum() == 30
    facts = profile.overview().facts
    assert facts["step_busy_ns"] == 30 * MS // 2
    assert facts["step_ns"] == pytest.approx(29.5 * MS + 100, abs=MS)
    assert "steady part of 29.5 ms" in profile.overview().text()
    assert profile.idle().total["ns"] == 29 * MS // 2
    for table in (profile.idle(), profile.overlap()):
        assert table.lead[0] == steps.left_out
    # All of it on request.
    assert profile.find_steps("none").of_kernel.tolist() == [0] * 60
    assert profile.trim(":").find_steps().left_out == ""


def test_repeated_ranges_after_start_up_are_the_steps(opened: Make) -> None:
    program = Program()
    program.range("setup", 30)
    for i in range(4):
        program.range(f"iteration {i}", 6)
    steps = opened(program).find_steps()
    assert steps.description == "4 steps (iteration 0 to iteration 3)"
    assert "start-up 30 ms (setup) is left out, then 4 steps" in steps.left_out
    assert steps.is_counted.all()


def test_a_range_around_the_program_hides_no_start_up(opened: Make) -> None:
    program = Program()
    program.range("compile", 10)
    program.range("run", 40)
    program.push_pop(MS - 200, program.now, "main", tid=1)
    assert "(compile) is left out, then run;" in opened(program).find_steps().left_out


@pytest.mark.parametrize(
    "names",
    [
        ["setup", "train", "setup", "train"],  # a part of every step
        ["train", "warmup", "train 2"],  # after the work
        ["forward", "backward", "optimizer"],
        ["init_model"],  # nothing else
    ],
)
def test_what_is_no_start_up_stays(names: list[str], opened: Make) -> None:
    program = Program()
    for name in names:
        program.range(name, 20)
    assert opened(program).find_steps().left_out == ""


def test_uploads_before_the_first_product_are_start_up(opened: Make) -> None:
    program = Program()
    program.uploads(40)
    program.work(1, "embedding")
    program.work(30)
    steps = opened(program).find_steps()
    assert "start-up 39.9 ms (uploads) is left out, then the rest" in steps.left_out
    assert (steps.of_kernel >= 0).sum() == 31


@pytest.mark.parametrize(("before", "after"), [(3, 0), (20, 20)])
def test_uploads_of_batches_are_no_start_up(before: int, after: int, opened: Make) -> None:
    program = Program()
    program.uploads(before)
    program.work(30)
    program.uploads(after)
    assert opened(program).find_steps().left_out == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((each, True) for each in ("init_model", "Initialize Model", "warmup", "Warm-up Step 3")),
        *((each, True) for each in ("ModelInit", "buildModel", "load_model", "torch.compile")),
        *((each, True) for each in ("cuda graph capture", "autotune", "Set-up", "load weights")),
        *((each, False) for each in ("initial", "Torch-Compiled Region: 0/0", "load batch")),
        *((each, False) for each in ("forward", "rebuild", "reset", "benchmark_loop", "finit")),
    ],
)
def test_names_of_start_up(name: str, expected: bool) -> None:
    assert _is_startup(name) == expected


@pytest.fixture
def halves(opened: Make) -> fastprof.Profile:
    program = Program()
    for name in ("first", "second"):
        program.range(name, 20)
    return opened(program)


@pytest.mark.parametrize(
    ("part", "kernels", "ms"),
    [
        ("first", 20, 10),
        ("sec*", 20, 10),
        ("*", 40, 20),
        ("5ms:15ms", 10, 5),
        ("0:5500us", 6, 3),
        ("39.5ms:", 0, 0),
        (":2ms", 2, 1),
        (".01s : 20 ms", 10, 5),
    ],
)
def test_a_part_counts_what_is_launched_in_it(
    part: str, kernels: int, ms: float, halves: fastprof.Profile
) -> None:
    if not kernels:
        with pytest.raises(StepsError, match=r"no GPU work is launched|has no work"):
            halves.trim(part).summary()
        return
    profile = halves.trim(part)
    # Launches precede the GPU by 10 ns.
    assert profile.summary().total["kernels"] == pytest.approx(kernels, abs=1)
    assert profile.overview().facts["busy_ns"] == pytest.approx(ms * MS, abs=MS)
    assert len(profile) == 40


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("third", "no range matches 'third'.*nearest: .*first"),
        ("3s:1s", "'3s:1s' ends before it begins: expected A:B"),
        ("5ms:5ms", "ends before it begins"),
        ("3s:", "has no work: the capture takes 39.5 ms"),
        ("39.5ms:", "has no work|no GPU work is launched"),
        ("1:2", "no range matches '1:2': expected A:B with times such as 1.5s:4s"),
    ],
)
def test_mistakes(part: str, message: str, halves: fastprof.Profile) -> None:
    with pytest.raises(StepsError, match=message):
        halves.trim(part)


def test_steps_of_the_capture_count_within_a_part(opened: Make) -> None:
    program = Program()
    for i in range(10):
        program.range(f"step {i}", 4)
    steps = opened(program).trim("7ms:25ms").find_steps()
    assert steps.number[steps.is_counted].tolist() == [2, 3, 4, 5]
    assert len(steps) == 10


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """20 kernels in one range, 12 in another, and a copy outside of both."""
    program = Program()
    program.range("first", 20)
    program.range("second", 12)
    return program.write(tmp_path / "two.sqlite")


@pytest.mark.parametrize("name", ["csv", "sqlite", "chrome", "perfetto", "collapsed"])
def test_exports_have_the_option(name: str, two: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("export", two, "--to", name, "--trim", "second", "-o", out).returncode == 0
    if name == "csv":
        assert len(out.read_text().splitlines()) == 1 + 12
    elif name == "sqlite":
        (rows,) = sqlite3.connect(out).execute("SELECT count(*) FROM kernels").fetchone()
        assert rows == 12
    elif name == "chrome":
        events = json.loads(out.read_text())["traceEvents"]
        assert len([each for each in events if each.get("cat") == "kernel"]) == 12
    failed = run("export", two, "--to", name, "--trim", "third", "-o", out)
    assert failed.returncode == 1 and b"no range matches 'third'" in failed.stderr


def test_ranks_have_the_option(two: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for part, kernels in (("first", 20), ("second", 12)):
        words = ["batch", two, "--trim", part, "--store", store, "--table", "totals", "--csv"]
        done = run(*words)
        assert done.returncode == 0, done.stderr
        rows = list(csv.DictReader(done.stdout.decode().splitlines()))
        assert sum(int(row["kernels"]) for row in rows) == kernels
        assert run(*words).stdout == done.stdout
    failed = run("batch", two, "--trim", "third")
    assert failed.returncode == 1 and b"no range matches 'third'" in failed.stderr
    other = tmp_path / "other.sqlite"
    other.write_bytes(two.read_bytes())
    out = tmp_path / "ranks.html"
    assert run("report", two, other, "--trim", "second", "-o", out).returncode == 0


def test_comparisons_trim_both_captures(two: Path, tmp_path: Path) -> None:
    words = ["diff", two, two, "--steps", "none"]
    for part, kernels in (("first", 20), ("second", 12)):
        said = run(*words, "--trim", part).stdout.decode()
        assert f"same work: {kernels} kernels" in said
    store = tmp_path / "store"
    assert run("diff", "--baseline", store, "--save", two, "--trim", "second").returncode == 0
    done = run("diff", "--baseline", store, two)
    assert b"same work: 12 kernels" in done.stdout
    failed = run("diff", "--baseline", store, two, "--trim", "first")
    assert failed.returncode == 1
    assert b"was stored with --trim second, expected first" in failed.stderr


def test_tables_of_nsys_count_the_part(two: Path) -> None:
    tables = fastprof.open(two, copies=True).trim("second").report("stats")
    for name, count in (("cuda_gpu_kern_sum", 12), ("cuda_api_sum", 12), ("nvtx_sum", 1)):
        table = tables[name]
        column = "Num Calls" if name == "cuda_api_sum" else "Instances"
        assert sum(table[column]) == count, name


def test_coverage_of_a_part(two: Path) -> None:
    profile = fastprof.open(two, copies=True)
    for part, kernels in (("first", 20), ("second", 12), (":", 32)):
        assert profile.trim(part).coverage_of_kernels.kernels == kernels


def test_whatif_names_what_the_times_are_of(two: Path) -> None:
    profile = fastprof.open(two, copies=True)
    for opened, unit in ((profile, "capture"), (profile.trim("second"), "part")):
        table = opened.whatif(scale=["host:0.5"])
        assert any(line.startswith(f"{unit} ") for line in table.lead)
        assert f"largest difference of a {unit}" in " ".join(table.lead)
        assert {each.key: each.header for each in table.headings}["wall_ns"] == unit
        assert f"no steps: all times are those of the {unit}" in table.notes
        first = opened.advise().lead[2]
        assert first.startswith(f"{unit} ")


def test_a_part_without_copies_says_where_they_are(tmp_path: Path) -> None:
    program = Program()
    program.range("first", 20)
    program.uploads(3)
    program.range("second", 12)
    path = program.write(tmp_path / "copies.sqlite")
    said = run("copies", path, "--trim", "second").stdout.decode()
    assert "no memory copies or memsets in this part of the capture; 3 outside of it" in said
    assert "--where selects no copy" in run("copies", path, "--where", "op=x").stdout.decode()


@pytest.mark.parametrize("command", ["summary", "steps", "idle", "advise", "copies", "layers"])
def test_reports_have_the_option(command: str, tmp_path: Path) -> None:
    program = Program()
    program.range("first", 20)
    program.range("second", 20)
    path = program.write(tmp_path / "two.sqlite")
    assert run(command, path, "--trim", "second").returncode == 0
    failed = run(command, path, "--trim", "third")
    assert failed.returncode == 1 and b"no range matches 'third'" in failed.stderr
