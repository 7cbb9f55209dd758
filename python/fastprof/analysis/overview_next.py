"""The commands that `overview` proposes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from fastprof.analysis.advice.facts import Facts
from fastprof.model.table import Table

_MOST: Final = 4
_LARGE: Final = 0.05  # of a step


def next_commands(facts: Facts, tables: Mapping[str, Table]) -> tuple[tuple[str, str], ...]:
    """Up to four commands, each with the question that it answers."""
    file = shlex.quote(facts.profile.name)
    proposed = ((f"fastprof {words.format(file)}", why) for words, why in _proposed(facts, tables))
    return tuple(islice(proposed, _MOST))


def _proposed(facts: Facts, tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Arguments, with {} for the file, and what they show; the most useful first."""
    profile = facts.profile
    if not len(profile):
        yield "info {}", "what to record"
        yield "summary {}", "CPU time by operator"
        return
    if n := tables["findings"].n_rows:
        yield "advise {}", f"evidence and remedies of {'all ' * (n > 1)}{n} finding{'s' * (n > 1)}"
    yield "report {}", "charts and all tables, as an HTML page"
    by_line = tables["lines"].n_rows > 0
    if facts.has_times:
        times, step = facts.times, max(facts.step_ns, 1)
        if times["idle_ns"] >= _LARGE * step and tables["idle"].n_rows:
            words = "idle {} --by line" if by_line else "idle {} --gaps 20"
            yield words, "where the GPU waits" if by_line else "the longest gaps"
        if times["exposed_communication_ns"] >= _LARGE * step:
            yield "overlap {}", "communication that is not hidden behind compute"
    if tables["layers"].n_rows:
        yield "layers {} --fold", "the module tree, forward and backward"
    if tables["ops"].total.get("lost_ns") is not None:
        yield "roofline {}", "shapes far from the peak rates of the GPU"
    if len(profile.about.memory):
        yield "memory {}", "what is in memory at the peak"
    if by_line:
        yield "lines {}", "source lines, with all that they call"
    yield "info {}", "what to record for more detail"
    yield "summary {} --by kind,kernel", "GPU time by kernel"
