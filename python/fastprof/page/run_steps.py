"""Section: the length of all steps of the run that a trace is from, the recorded ones marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.metadata import positive
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Table, text_column
from fastprof.page.section import Chart, Fact, Section
from fastprof.readers.beside import facts_in

_MOST_CHARTS: Final = 8
_MOST_STEPS: Final = 1 << 16  # lengths of a process
_LARGEST: Final = 1 << 60  # ns
_HEADINGS: Final = (
    Heading("step", "step", about="the number of the step, from 0"),
    Heading("length", "length", "ns", about="on the host; the longest of several steps"),
    Heading("recorded", "recorded", about="whether the recorder was on"),
)


@dataclass(frozen=True)
class _Steps:
    """The steps of a process: lengths in ns [n], each the longest of `per`; recorded [n]."""

    name: str
    per: int
    length: Int64
    is_recorded: Int64

    def labels(self) -> list[str]:
        starts = range(0, self.per * len(self.length), self.per)
        return [f"{at} to {at + self.per - 1}" if self.per > 1 else f"{at}" for at in starts]


def run_steps(trace: str) -> Section | None:
    """The section of a trace in the directory of its run; None if no lengths of steps are there.

    trace : path of the trace
    """
    path = Path(trace)
    if not path.name.startswith("trace"):
        return None
    try:
        facts = facts_in(path.parent)
    except (OSError, ValueError):
        return None
    processes = list(_processes(facts))
    if not processes:
        return None
    shown = processes[:_MOST_CHARTS]
    n_more = len(processes) - len(shown)
    return Section(
        "run-steps",
        "Steps of the run",
        [_about(shown), *_causes(facts)],
        list(_numbers(shown)),
        [_chart(steps) for steps in shown],
        tables=[(f"Length of steps{steps.name}", _table(steps)) for steps in shown],
        missing=[f"charts of {n_more} more processes are omitted"] if n_more else [],
    )


def _about(processes: list[_Steps]) -> str:
    merged = max(process.per for process in processes)
    several = f" A bar is the longest of {merged} steps." if merged > 1 else ""
    return (
        "The length of steps on the host, until the last recording ended. The recorder makes "
        f"recorded steps longer.{several}"
    )


def _numbers(processes: list[_Steps]) -> Iterator[Fact]:
    for process in processes:
        known = process.length[(process.length > 0) & (process.is_recorded == 0)]
        if len(known):
            about = "not recorded" if process.per == 1 else f"of the longest of {process.per}"
            yield Fact(f"Median step{process.name}", quantity(float(np.median(known)), "ns"), about)


# Facts are from a file: what has another type than that of `fastprof run` is left out.


def _processes(facts: dict[str, Any]) -> Iterator[_Steps]:
    processes = _dicts(facts.get("processes"))
    for process in processes:
        lengths = process.get("step_lengths")
        per = positive(lengths.get("per")) if isinstance(lengths, dict) else None
        values = lengths.get("ns") if isinstance(lengths, dict) else None
        if per is None or per > _LARGEST or not isinstance(values, list):
            continue
        length = np.array([_length(value) for value in values[:_MOST_STEPS]], np.int64)
        if length.any():
            rank, pid = (_length(process.get(name)) for name in ("rank", "pid"))
            world = positive(process.get("world")) or 1
            name = f" of rank {rank}" if world > 1 else f" of process {pid}"
            recorded = _recorded(process, per, len(length))
            yield _Steps(name if len(processes) > 1 else "", per, length, recorded)


def _recorded(process: dict[str, Any], per: int, n: int) -> Int64:
    result = np.zeros(n, np.int64)
    for recording in _dicts(process.get("recordings")):
        first, n_steps = (_length(recording.get(name)) for name in ("first", "n_steps"))
        if n_steps:
            result[first // per : (first + n_steps - 1) // per + 1] = 1
    return result


def _causes(facts: dict[str, Any]) -> list[str]:
    causes = facts.get("causes")
    known = (
        [cause for cause in causes if isinstance(cause, str)] if isinstance(causes, list) else []
    )
    return [f"{text[:1].upper()}{text[1:]}." for text in known]


def _length(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value <= _LARGEST else 0


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _chart(steps: _Steps) -> Chart:
    recorded = steps.length * steps.is_recorded
    return Chart(
        "bars",
        f"The length of each step{steps.name}, the recorded ones marked",
        {
            "unit": "step",
            "labels": steps.labels(),
            "parts": [
                {"name": "recorded", "color": ["kind", "optimizer"]},
                {"name": "not recorded", "color": ["kind", "gemm"]},
            ],
        },
        {"values": np.concatenate([recorded, steps.length - recorded]).astype(np.float64)},
        ("bars.css",),
    )


def _table(steps: _Steps) -> Table:
    columns: dict[str, ColumnData] = {
        "step": text_column(steps.labels()),
        "length": Ints(steps.length, none=0),
        "recorded": text_column([("", "yes")[number] for number in steps.is_recorded.tolist()]),
    }
    return Table(columns, _HEADINGS)
