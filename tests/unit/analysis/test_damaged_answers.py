"""Answers on captures with values that only damaged files have."""

from pathlib import Path

import pytest

import fastprof
from support.kineto_files import KinetoFile

ANSWERS = ("overview", "advise", "whatif", "steps", "idle", "overlap", "summary", "roofline")
LATE = 9_223_372_036_854_000  # us: in ns more than 64 bits


def capture(
    path: Path, damaged: tuple[int, ...] = (0,), device: object = 0, start: int = 20_000
) -> fastprof.Profile:
    trace = KinetoFile()
    for number in range(3):
        at = 1_000 * number
        trace.annotation(at, at + 900, f"ProfilerStep#{number}")
        trace.op(at + 10, at + 500, "aten::mm", dims=[[64, 64], [64, 64]], types=["float", "float"])
        trace.launch(at + 20, at + 25, number + 1)
        trace.kernel(at + 30, at + 600, number + 1, device=device if number in damaged else 0)
    trace.launch(2_950, 2_960, 9).kernel(start, start + 5, 9)
    return fastprof.open(trace.write(path), copies=True)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("damaged", [(0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("damage", [{"device": None}, {"device": "first"}, {"start": LATE}])
def test_damaged_values_do_not_end_an_answer(answer, damage, damaged, tmp_path):
    profile = capture(tmp_path / "net.json", damaged, **damage)
    assert profile.report(answer).text()


def test_a_page_of_damaged_values_is_complete(tmp_path):
    page = capture(tmp_path / "net.json", (1, 2), None, LATE).report()
    page.save(tmp_path / "net.html")
    assert (tmp_path / "net.html").read_text().rstrip().endswith("</html>")
