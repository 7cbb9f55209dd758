"""The real trace under test, read once: its text, JSON, profiles, rows and reports.

Tests of one trace run in succession in one process (tests/real/conftest.py), which then calls
`forget`. Tests must not change what they get.
"""

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

import fastprof
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.replay.model import Model
from fastprof.page.section import PageSource, Section
from fastprof.page.sections.answer import section
from fastprof.readers.kineto import event_columns
from fastprof.readers.kineto.event_columns import KinetoFile
from oracle import databases, kineto
from oracle.capture import Capture
from real import profiled
from support.real_data import real

Result = TypeVar("Result")
_kept: list[Callable[[], None]] = []


def kept(function: Callable[..., Result]) -> Callable[..., Result]:
    """A function of a trace, whose results are kept until `forget`."""
    cached = lru_cache(function)
    _kept.append(cached.cache_clear)
    return cached


def forget() -> None:
    """Release the trace."""
    for clear in _kept:
        clear()


@kept
def text(path: str) -> bytes:
    """The uncompressed text of a .json.gz."""
    return gzip.decompress(real(path).read_bytes())


@kept
def json_of(path: str) -> Any:
    """The JSON of a trace, with a Decimal for each float; in early 2021 a list of events."""
    root = json.loads(text(path), strict=False, parse_float=Decimal)
    return {"traceEvents": root} if isinstance(root, list) else root


def events(path: str) -> list[dict[str, Any]]:
    """The events of a trace, with a Decimal for each float."""
    return json_of(path)["traceEvents"]


def profile(path: str, copies: bool = False) -> fastprof.Profile:
    """The trace opened by fastprof; `copies` includes memory copies and memsets."""
    return _profile(path, copies)


@kept
def _profile(path: str, copies: bool) -> fastprof.Profile:
    return fastprof.open(real(path), copies=copies)


@kept
def report(path: str, name: str) -> Any:
    """A report of the trace with its copies, without options."""
    return profile(path, copies=True).report(name)


@kept
def rule_facts(path: str) -> Facts:
    """What the rules of `advise` know of the trace with its copies."""
    return Facts(profile(path, copies=True))


@kept
def replay_model(path: str) -> Model:
    """The replay of the trace with its copies."""
    return Model(profile(path, copies=True))


@kept
def first_section(path: str) -> Section:
    """The first section of the page of the trace with its copies."""
    return section(PageSource(profile(path, copies=True)))


@kept
def capture(path: str) -> Capture:
    """The trace as the oracle reads it."""
    return kineto.capture(json_of(path)) if ".json" in path else databases.read(real(path))


@kept
def rows(path: str) -> list[profiled.Row]:
    """The rows of the trace's report."""
    return profiled.rows(real(path))


@kept
def columns(path: str) -> KinetoFile:
    """The columns of a .json.gz."""
    return event_columns.read(real(path), path)
