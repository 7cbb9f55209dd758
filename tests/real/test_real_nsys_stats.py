"""The tables of `fastprof stats` equal those of a real nsys; skipped without one."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from fastprof.analysis.stats.columns import TABLES
from real import open_traces
from support import nsys_tool
from support.real_data import real, traces

pytestmark = pytest.mark.usefixtures("real_nsys")

# nsys numbers ranges differently, and the rest has a row for work outside all ranges.
NOT_COMPARED = {"RangeId", "ParentId", "RangeStack"}
NAMES = {"NVTX Range", "Range", "Name"}
# nsys orders these by columns that its SQL does not name, or leaves rows of equal totals unordered.
UNORDERED = {"nvtx_sum", "nvtx_gpu_proj_sum", "nvtx_gpu_proj_trace"}


def row(cells: dict[str, object], is_of_ranges: bool) -> tuple[object, ...]:
    """The compared values; nsys before 2024 prints names of the default domain without ':'."""
    result: list[object] = []
    for name, value in cells.items():
        text = "" if value is None else str(value)
        if name in NOT_COMPARED:
            continue
        if is_of_ranges and name in NAMES:
            result.append(text.removeprefix(":"))
        else:
            result.append(_number(text))
    return tuple(result)


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.parametrize("path", traces("nsys/*.sqlite", "pyprof/vsr_a100_nsys2024.sqlite"))
def test_tables_equal_those_of_nsys(path: str, tmp_path: Path) -> None:
    copy = tmp_path / "net.sqlite"
    copy.write_bytes(Path(real(path)).read_bytes())
    words = ["--force-export=false", "--quiet", "--format=csv", f"--output={tmp_path / 'of'}"]
    output = nsys_tool.nsys("stats", *words, f"--report={','.join(TABLES)}", str(copy))
    profile = open_traces.profile(path, copies=True)
    compared = 0
    for name in TABLES:
        made = tmp_path / f"of_{name}.csv"
        if not made.exists() or not made.read_text().strip():  # nsys found no data
            continue
        with made.open(newline="") as file:
            theirs = [row(cells, name.startswith("nvtx")) for cells in csv.DictReader(file)]
        theirs = [their for their in theirs if "" not in (their[0], their[-1])]
        table = profile.report("stats", names=[name])
        ours = [row(cells, name.startswith("nvtx")) for cells in table.rows()]
        assert Counter(ours) == Counter(theirs), name
        assert ours == theirs or name in UNORDERED, name
        compared += 1
    assert compared or "does not contain" in output or not len(profile.ranges), output
