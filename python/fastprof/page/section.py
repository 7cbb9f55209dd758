"""The parts of a page: sections, their tables and charts, and the source of their numbers.

uPlot, the library of the roofline and memory charts: axes, zoom and curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.reports import find, report_of
from fastprof.analysis.roofline.peaks import devices_with
from fastprof.analysis.schedule import Ahead
from fastprof.model.columns import Ints
from fastprof.model.quantity import quantity
from fastprof.model.table import Table
from fastprof.profile.data import ProfileData

_PEAKS = ("gpu", "peak", "bandwidth")
_PER_GPU = ("steps",)  # reports with rows for each GPU
_MOST_GPUS = 100  # of a page
_WITHOUT_HOST = ("steps", "copies")  # reports that the host's side only adds columns to


@dataclass(frozen=True)
class Chart:
    """A chart, drawn by a script.

    Parameters
    ----------
    script : file in `assets` without `.js`, and the name that it gives to `fastprof.define`
    label : accessible name, one sentence
    data : numbers, texts, lists and dicts; raw units (ns, bytes, FLOP); NaN becomes null
    arrays : int8 to int32, uint8 to uint32, float32 or float64, of one dimension
    assets : further files in `assets`, `.js` or `.css`, which the page includes before the script
    """

    script: str
    label: str
    data: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    assets: Sequence[str] = ()


@dataclass(frozen=True)
class Fact:
    """A number that the section shows large.

    Parameters
    ----------
    name : what it measures
    value : number with unit, as text
    about : one short line below; "" for none
    share : from 0 to 1, shown as a bar; None for none
    """

    name: str
    value: str
    about: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Card:
    """A finding.

    Parameters
    ----------
    title : one sentence
    badge : short text beside the title, such as a saving
    rows : (name, text) of each part
    """

    title: str
    badge: str = ""
    rows: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Section:
    """A section of a page. All texts are plain text.

    Parameters
    ----------
    id : anchor, lower-case words joined by -
    title : heading
    lead : paragraphs below the heading
    facts : numbers shown large
    charts : drawn by scripts, above the tables
    cards : findings
    tables : (caption, table) of each; the lines of its lead and its notes are shown with it
    missing : what is not recorded here, and how to record it; one sentence each
    """

    id: str
    title: str
    lead: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    charts: Sequence[Chart] = ()
    cards: Sequence[Card] = ()
    tables: Sequence[tuple[str, Table]] = ()
    missing: Sequence[str] = ()


class PageSource:
    """A profile and its reports; each report is made once.

    Parameters
    ----------
    profile : the profile
    peaks : gpu, peak and bandwidth; see `fastprof.model.device_options.with_figures`
    ahead : makes reports on another thread
    """

    def __init__(
        self,
        profile: ProfileData,
        peaks: Mapping[str, Any] | None = None,
        ahead: Ahead | None = None,
    ) -> None:
        self.profile = profile
        self.peaks = {name: each for name, each in (peaks or {}).items() if each is not None}
        self._tables: dict[str, Table] = {}
        self._ahead = Ahead() if ahead is None else ahead

    @cached_property
    def facts(self) -> Facts:
        """The facts that findings use: steps, their windows, idle time by cause."""
        return Facts(self.profile, None, devices_with(self.profile, **self.peaks))

    def begin(self, names: Iterable[str]) -> None:
        """Make reports without options on the other thread; `table` waits for them."""
        for name in names:
            self._ahead.begin(_key(name, {}), self._make, name, {})

    def table(self, name: str, **options: Any) -> Table:
        """A report, with the user's peaks if it takes them; see `Profile.report`.

        Raises
        ------
        ReportError, StepsError, BadInputError
            See the report.
        """
        key = _key(name, options)
        if key not in self._tables:
            self._tables[key] = self._ahead.result(key, self._make, name, options)
        return self._tables[key]

    def _make(self, name: str, options: Mapping[str, Any]) -> Table:
        omitted = self.profile.source.host_omitted
        if omitted and "host" in find(name).needs and name not in _WITHOUT_HOST:
            return Table({name: Ints(np.empty(0, np.int64))}, (), notes=(omitted,))
        taken = {each.name for each in find(name).options} & set(_PEAKS)
        peaks = {each: value for each, value in self.peaks.items() if each in taken}
        where, notes = self._busiest if name in _PER_GPU else ({}, ())
        table = report_of(self.profile, name, **peaks, **options, **where)
        return replace(table, notes=(*notes, *table.notes)) if notes else table

    @cached_property
    def _busiest(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The option `where` for the GPUs with the most work, and what is left out; empty if that
        is all of them."""
        lanes = self.facts.windows.lanes
        if len(lanes) <= _MOST_GPUS:
            return {}, ()
        work = lanes.work
        ns = np.bincount(work.numbers(), work.own_ns(), len(lanes))
        chosen = np.argsort(-ns, kind="stable")[:_MOST_GPUS]
        rest = quantity(float(ns.sum() - ns[chosen].sum()), "ns")
        where = {
            name: tuple("na" if each < 0 else str(each) for each in np.unique(column[chosen]))
            for name, column in (("process", lanes.pid), ("device", lanes.device))
        }
        note = (
            f"The page has the {_MOST_GPUS} busiest of {len(lanes):,} GPUs; busy time of the other "
            f"{len(lanes) - _MOST_GPUS:,}: {rest}"
        )
        return {"where": where}, (note,)


def _key(name: str, options: Mapping[str, Any]) -> str:
    return repr((name, sorted(options.items())))


SectionMaker = Callable[[PageSource], Section]


UPLOT: Final = (
    "vendor/uplot-1.6.32/uPlot.min.css",
    "vendor/uplot-1.6.32/uPlot.iife.min.js",
    "plot.js",
    "plot.css",
)
