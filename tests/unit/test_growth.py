"""Captures with thousands of threads or levels end within seconds that quadratic work exceeds.

`python -m fuzz.growth` measures all commands on all shapes.
"""

import pytest

from fuzz.growth import Run, measured, problem
from fuzz.many_units import SHAPES, write

SECONDS = 30  # of CPU time; linear work takes 1 to 3, and what was quadratic, over 60

WORST = [
    ("kineto/threads", 2000, ["overview", "FILE"]),
    ("kineto/threads", 2000, ["idle", "--json", "FILE"]),
    ("kineto/nested-modules", 3000, ["layers", "--json", "FILE"]),
    ("kineto/nested", 4000, ["ranges", "--json", "FILE"]),
    ("nsys/nested-names", 4000, ["ranges", "FILE"]),
    ("kineto/frames", 4000, ["lines", "--csv", "FILE"]),
]


@pytest.mark.parametrize(("shape", "n", "words"), WORST, ids=lambda value: str(value))
def test_commands_end_soon(shape, n, words, tmp_path):
    run = measured(words, write(shape, n, tmp_path), n, SECONDS)
    assert run.ended == 0, (tmp_path / "printed").read_text()[-2000:]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_a_capture(shape, tmp_path):
    """`stats` opens each and lists all of its ranges and calls."""
    run = measured(["stats", "--json", "FILE"], write(shape, 20, tmp_path), 20, SECONDS)
    assert run.ended == 0, (tmp_path / "printed").read_text()[-2000:]


def test_quadratic_time_memory_and_deaths_are_problems():
    linear = [Run(10**4, 1.0, 100 << 20, 0), Run(10**5, 10.0, 200 << 20, 0)]
    assert problem(linear) == ""
    assert problem([linear[0], Run(10**5, 100.0, 200 << 20, 0)]) == "time x 100"
    assert "bytes a unit" in problem([linear[0], Run(10**5, 10.0, 1 << 30, 0)])
    assert problem([linear[0], Run(10**5, 1.0, 0, -9)]) == "killed"
    assert problem([Run(10**4, 1.0, 0, 70)]) == "traceback"
