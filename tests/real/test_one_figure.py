"""One fact has one figure: every report, the page, Python and the command agree on it."""

import json
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.model.numbers import quantity
from real import open_traces
from real.open_traces import profile as opened
from real.open_traces import report
from support.commands import run
from support.real_data import real, traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*", "rocpd/*.json.gz")
LENGTH, BUSY, IDLE = "length", "busy", "idle"


def weighted(rows: list[dict[str, Any]], name: str) -> float:
    """The mean over steps and GPUs of a figure that is given per GPU."""
    counts = [row["steps"] for row in rows]
    return float(np.average([row[name] for row in rows], weights=counts))


def claims(path: str) -> dict[str, list[tuple[str, float]]]:
    """By fact, who says what of the mean step; without steps, of the capture per GPU. ns."""
    trace, facts = opened(path, copies=True), open_traces.rule_facts(path)
    names = ("overview", "summary", "steps", "whatif", "advise")
    overview, summary, steps, whatif, advice = (report(path, name) for name in names)
    has_steps = trace.find_steps().source != "none"
    said: dict[str, list[tuple[str, float]]] = {LENGTH: [], BUSY: [], IDLE: []}
    for name, table in (("overview", overview), ("summary", summary)):
        prefix = "step_" if has_steps else ""
        length = table.facts["step_ns" if has_steps else "span_ns"]
        said[LENGTH].append((name, length))
        said[BUSY].append((name, table.facts[f"{prefix}busy_ns"]))
        said[IDLE].append((name, length - table.facts[f"{prefix}busy_ns"]))
    of_gpus = steps.facts["lengths"]
    rows = [row for row in steps.rows() if row["is_counted"]]
    for fact, column in ((LENGTH, "wall_ns"), (BUSY, "busy_ns"), (IDLE, "idle_ns")):
        figure = "mean_ns" if fact == LENGTH else column
        said[fact].append(("lead of steps", weighted(of_gpus, figure)))
        said[fact].append(("rows of steps", float(np.mean([row[column] for row in rows]))))
    said[LENGTH].append(("findings", facts.step_ns))
    said[LENGTH].append(("advise", advice.facts["step_ns"]))
    said[BUSY].append(("findings", facts.times["busy_ns"]))
    said[IDLE].append(("findings", facts.times["idle_ns"]))
    if len(trace.api):
        said[IDLE].append(("causes of findings", float(facts.idle.means.sum())))
        said[IDLE].append(("causes of the overview", overview["idle"].total["ns"]))
    walls = [step["replayed_ns"] for step in whatif.facts["steps"] if step["is_counted"]]
    if walls and len(of_gpus) == 1:  # a replay has a length per step, not per GPU
        said[LENGTH].append(("whatif", float(np.mean(walls))))
    diff = fastprof.diff(trace, trace)
    said[LENGTH].append(("diff", diff.wall["before_ns"]))
    if has_steps and len(of_gpus) == 1:
        said[LENGTH].append(("find_steps", trace.find_steps().mean))
        said[LENGTH].append(("every JSON", overview.facts["steps"]["mean_ns"]))
    return said


@pytest.mark.every_trace
@pytest.mark.parametrize("path", TRACES)
def test_every_report_has_the_same_step_busy_and_idle_time(path: str) -> None:
    if not len(opened(path, copies=True)):
        pytest.skip("no GPU work")
    for fact, figures in claims(path).items():
        expected = figures[0][1]
        for name, figure in figures:
            assert figure == pytest.approx(expected, abs=max(2, 1e-9 * expected)), (fact, name)


@pytest.mark.every_trace
@pytest.mark.parametrize("path", TRACES)
def test_the_capture_is_the_same_in_idle_overlap_and_steps(path: str) -> None:
    trace = opened(path, copies=True).trim(":")
    if not len(trace):
        pytest.skip("no GPU work")
    gpus = trace.idle().facts["gpus"]
    lines = trace.overlap().facts["gpus"]
    rows = list(trace.steps(steps="none").rows())
    facts, summary = trace.overview().facts, trace.summary().facts
    assert len(gpus) == len(lines) == len(rows) == facts["gpus"]
    for gpu, line, row in zip(gpus, lines, rows, strict=True):
        assert gpu["device"] == line["device"] == row["device"]
        assert gpu["span_ns"] == line["span_ns"] == row["wall_ns"]
        assert gpu["busy_ns"] == row["busy_ns"]
        assert gpu["idle_ns"] == row["idle_ns"] == line["idle_ns"]
    assert facts["span_ns"] == pytest.approx(np.mean([gpu["span_ns"] for gpu in gpus]))
    for each in (facts, summary):
        assert each["busy_ns"] == pytest.approx(np.mean([gpu["busy_ns"] for gpu in gpus]))


@pytest.mark.every_trace
@pytest.mark.parametrize("path", TRACES)
def test_the_page_and_the_screen_print_these_figures(path: str) -> None:
    if not len(opened(path, copies=True)):
        pytest.skip("no GPU work")
    facts = open_traces.rule_facts(path)
    step, times = facts.step_ns, facts.times
    busy, idle = quantity(times["busy_ns"], "ns"), quantity(times["idle_ns"], "ns")
    share = f"{times['busy_ns'] / max(step, 1):.1%}"
    printed = {
        fact.name: (fact.value, fact.about) for fact in open_traces.first_section(path).facts
    }
    assert printed[facts.steps.word.capitalize() if facts.has_steps else "Capture"][0] == quantity(
        step, "ns"
    )
    assert printed["GPU busy"] == (share, busy)
    assert printed["GPU idle"][0] == idle
    for name in ("overview", "summary"):
        screen = " ".join(report(path, name).text(width=400).split())
        assert f"GPU busy {busy}, {share}, idle {idle}" in screen
        assert (
            f"{facts.steps.word if facts.has_steps else 'capture of'} {quantity(step, 'ns')}"
            in screen
        )


@pytest.mark.parametrize("path", TRACES)
def test_python_and_the_command_agree(path: str) -> None:
    done = run(real(path), "--json")
    command, python = (
        json.loads(done.stdout),
        json.loads(report(path, "overview").to_json()),
    )
    for values in (command, python):
        values.pop("next")  # commands with the path as it was given
    assert python == command
