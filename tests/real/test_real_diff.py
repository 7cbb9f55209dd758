"""`diff` of real captures: known pairs, each capture against itself, and pairs in both orders."""

from typing import Any

import pytest

import fastprof
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.side import Side
from fastprof.api.diff import Diff
from fastprof.cli import main
from fastprof.cli.diff import DESCRIPTION
from fastprof.errors import ReportError
from real.open_traces import profile
from support import nvprof_as_nsys
from support.real_data import real, traces

ALL = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
R50, R50W4 = (f"kineto/resnet50_2021_{name}.json.gz" for name in ("stack_memory", "4workers"))
DLRM0, DLRM1 = (f"kineto/train_v100_2022{name}.json.gz" for name in ("_control", ""))
BLK, BLK2 = (f"nsys/emit_nvtx_2gpu{name}_nsys2026.sqlite" for name in ("", "_after"))
ANCHOR = "anchor:flash_fwd_kernel>5ms"
PAIRS = [(R50, R50W4, None), (DLRM0, DLRM1, None), (BLK, BLK2, ANCHOR)]


def side(path: str, steps: str | None = None) -> Side:
    (result,) = sides_of([profile(path, copies=True)], steps)
    return result


def compared(before: str, after: str, steps: str | None) -> Diff:
    real(before), real(after)
    return fastprof.diff(side(before, steps), side(after, steps))


def parts(found: Diff) -> dict[str, int]:
    return {
        row["part"]: row["delta_ns"]
        for row in found.table(["phase"]).rows()
        if row["part"].startswith("idle")
    }


# The mean and the median of the steps in ms before and after, the verdict, the code with 3 %.
KNOWN = {
    (R50, R50W4, None): ((175.52, 132.85), "faster", 0),
    (DLRM0, DLRM1, None): ((77.9, 117.67), "slower", 4),
    (BLK, BLK2, ANCHOR): ((17.57, 19.95), "slower", 4),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_change_of_known_pairs(pair, capsys):
    """As HTA and the programs' authors found it: 4 loader workers help, the others do not."""
    before, after, steps = pair
    walls, verdict, code = KNOWN[pair]
    words = ["diff", str(real(before)), str(real(after)), "--fail-above", "3"]
    assert main(words + (["--steps", steps] if steps else [])) == code
    result = compared(*pair)
    assert result.wall["verdict"] == verdict
    assert (result.wall["before_ns"], result.wall["after_ns"]) == (
        pytest.approx(walls[0] * 1e6, rel=1e-3), pytest.approx(walls[1] * 1e6, rel=1e-3)
    )  # fmt: skip
    assert f": {verdict}" in capsys.readouterr().out.splitlines()[0]


def test_the_loader_workers_remove_the_data_loading():
    """57.0 ms of 58.7 in `idle` by step; the program becomes host-bound instead."""
    idle = parts(compared(R50, R50W4, None))
    assert idle["idle: data loading"] == pytest.approx(-56.19e6, rel=0.01)
    assert idle["idle: host-bound"] > 9.5e6


def test_the_slower_block_waits_for_its_launches():
    """A block is 2.4 ms longer at equal work; idle time is 2.0 ms of it."""
    result = compared(BLK, BLK2, ANCHOR)
    assert result.same_work
    assert sum(parts(result).values()) == pytest.approx(2.0e6, rel=0.02)


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_add_up_to_the_change_of_the_step(pair):
    result = compared(*pair)
    for by in ("op", "dir,layer,op", "phase", "shape,line"):
        table = result.table(by)
        change = result.wall["after_ns"] - result.wall["before_ns"]
        assert int(table["delta_ns"].sum()) == table.total["delta_ns"] == change


@pytest.mark.parametrize("pair", PAIRS)
def test_the_reverse_is_the_negative(pair):
    before, after, steps = pair
    there, back = compared(before, after, steps), compared(after, before, steps)
    assert sorted(there.table("phase")["delta_ns"]) == sorted(-back.table("phase")["delta_ns"])
    assert (1 + there.wall["low"]) * (1 + back.wall["high"]) == pytest.approx(1)
    verdicts = {"slower": "faster", "faster": "slower"}
    assert verdicts[there.wall["verdict"]] == back.wall["verdict"]


@pytest.mark.parametrize("path", ALL)
def test_a_capture_equals_itself(path):
    """No change in any row, and no verdict but "same" or "not judged"."""
    real(path)
    try:
        own = side(path)
    except ReportError as error:
        pytest.skip(str(error))
    difference = fastprof.diff(own, own)
    assert difference.same_work
    assert difference.wall["verdict"] in ("same", "not judged")
    rows: list[dict[str, Any]] = list(difference.table().rows())
    assert {(row["delta_ns"], row["why"]) for row in rows} <= {(0, "same")}


@pytest.mark.parametrize("path", [R50, DLRM1, BLK2, "nsys/ranges_rtx3070_nsys2025.sqlite"])
def test_starved_kernels_are_those_of_launches(path):
    """Without steps, all kernels of the capture count."""
    real(path)
    windows = side(path, "none").windows
    total = profile(path, copies=True).launches().total
    share = windows["starved"].sum() / windows["launched"].sum()
    assert share == pytest.approx(total["starved_share"], abs=1e-12)
    assert windows["launch_ns"].sum() == total["host_ns"]


def test_a_program_in_two_formats_has_no_change(tmp_path):
    """A real capture of nvprof, and the same as an export of Nsight Systems."""
    before = real("pyprof/lm_v100_nvprof.sql")
    after = nvprof_as_nsys.convert(before).export.write(tmp_path / "lm.sqlite")
    difference = fastprof.diff(*(fastprof.open(file, copies=False) for file in (before, after)))
    assert difference.same_work
    rows = [row for row in difference.table().rows() if not row["part"].startswith("idle")]
    assert len(rows) > 10
    assert {(row["delta_ns"], row["why"]) for row in rows} == {(0, "same")}


def test_the_help_shows_a_real_comparison(monkeypatch, tmp_path, capsys):
    for name, path in (("before", BLK), ("after", BLK2)):
        (tmp_path / f"{name}.sqlite").symlink_to(real(path))
    monkeypatch.chdir(tmp_path)
    words = ["--by", "op", "--limit", "5", "-w", "80", "--steps", ANCHOR]
    assert main(["diff", "before.sqlite", "after.sqlite", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert DESCRIPTION.splitlines()[-len(lines) :] == lines
