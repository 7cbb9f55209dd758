"""Measure what `fastprof run` adds to a program: in all, at its start, and outside recorded steps.

The program runs alone and recorded in turns, with the same number of steps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

FIRST, LAST = 10, 13  # recorded; the step before warms up
AT_MOST = 0.03  # more time outside recorded steps


def measured(rounds: int, seconds: float, directory: Path) -> dict[str, dict[str, float]]:
    """Processor time in s: total, start and other steps, alone and recorded; medians."""
    n_steps = len(_times([], directory, seconds)["steps"])
    run = ["-m", "fastprof", "run", "--backend", "torch", "--runs", str(directory)]
    before = {"alone": [], "recorded": [*run, "--steps", f"{FIRST}:{LAST}"]}
    result = [
        {name: _parts(_times(words, directory, 1e9, n_steps)) for name, words in before.items()}
        for _ in range(rounds)
    ]
    return {
        name: {part: median(each[name][part] for each in result) for part in result[0][name]}
        for name in before
    }


def _parts(times: dict) -> dict[str, float]:
    steps = times["steps"]
    recorded = sum(steps[FIRST - 2 : LAST])  # what follows a step is part of its end
    return {
        "total": times["total"],
        "start": times["import"],
        "recorded steps": recorded,
        "other steps": sum(steps) - recorded,
    }


def _times(before: list[str], directory: Path, *arguments: float) -> dict:
    out = directory / "times.json"
    words = ["-m", "bench.annotated_program", str(out), *map(str, arguments)]
    subprocess.run(
        [sys.executable, *before, *words],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return json.loads(out.read_text())


def report(found: dict[str, dict[str, float]]) -> str:
    """A table, and whether the target is met."""
    lines = [f"{'fastprof run':<26}{'alone':>8}{'recorded':>18}{'more':>18}"]
    for part, alone in found["alone"].items():
        recorded = found["recorded"][part]
        lines.append(f"  {part:<24}{alone:>8.2f}{recorded:>18.2f}{recorded / alone - 1:>17.1%}")
    more = _outside(found["recorded"]) / _outside(found["alone"]) - 1
    verdict = "within" if more <= AT_MOST else "ABOVE"
    return "\n".join([*lines, f"  outside recorded steps {more:.1%}: {verdict} {AT_MOST:.0%}\n"])


def _outside(parts: dict[str, float]) -> float:
    return parts["total"] - parts["recorded steps"]
