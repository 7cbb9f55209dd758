"""Captures with thousands of threads or levels end within seconds that quadratic work exceeds.

`python -m fuzz.growth` measures all commands on all shapes.
"""

import time

import numpy as np
import pytest

from fastprof._core._replay import build
from fuzz.growth import KNOWN, RATIO, Run, measured, problem
from fuzz.many_units import SHAPES, write

SECONDS = 30  # of CPU time; linear work takes 1 to 3, and what was quadratic, over 60

WORST = [
    ("kineto/threads", 2000, ["overview", "FILE"]),
    ("kineto/threads", 2000, ["idle", "--json", "FILE"]),
    ("kineto/nested-modules", 3000, ["layers", "--json", "FILE"]),
    ("kineto/nested", 4000, ["ranges", "--json", "FILE"]),
    ("nsys/nested-names", 4000, ["ranges", "FILE"]),
    ("kineto/frames", 4000, ["lines", "--csv", "FILE"]),
    ("kineto/nested", 4000, ["report", "FILE"]),
    ("kineto/ranges", 5000, ["ranges", "--json", "FILE"]),
    ("kineto/devices", 1000, ["export", "--to", "speedscope", "FILE"]),
    ("kineto/devices", 1000, ["export", "--to", "perfetto", "FILE"]),
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


def test_known_limits_are_above_the_bound():
    for name, most_bytes in KNOWN.items():
        assert name in {shape.split("/")[1] for shape in SHAPES}
        runs = [Run(10**4, 1.0, 0, 0), Run(10**5, 1.0, int(most_bytes * 90_000), 0)]
        assert problem(runs, RATIO, most_bytes) == ""
        assert problem(runs) != ""


def test_a_call_of_many_threads_takes_logarithmic_time():
    """Each thread waits once; all may hand over to the next one."""

    def seconds(n):
        us = 1000
        start = np.arange(n) * 20 * us
        thread = np.arange(n, dtype=np.int32)
        none, zero = np.full(n, -1, np.int32), np.zeros(n, np.int32)
        begin = time.process_time()
        nodes, _ = build(
            start, start + 10 * us, thread, none, (thread % 2).astype(np.uint8), zero,
            start + 5 * us, np.full(n, 20 * us), zero, thread, zero, zero[:1], zero[:1], 1, 1, 0,
        )  # fmt: skip
        taken = time.process_time() - begin
        calls = np.flatnonzero(nodes["kind"] == 1)
        assert (np.diff(calls) > 0).all() and len(calls) == n
        return taken

    few, many = (min(seconds(n) for _ in range(3)) for n in (10_000, 100_000))
    assert many < 40 * few  # 100 if each call looks at all threads
