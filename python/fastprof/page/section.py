"""The parts of a page: sections, their tables and charts, the source of their numbers, uPlot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from fastprof._system import memory
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.memory import format_size
from fastprof._system.threads import computed_once
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.cells import FEW_CELLS
from fastprof.analysis.registry import Where
from fastprof.analysis.reports import find, report_of
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.analysis.schedule import Ahead
from fastprof.model.columns import Ints
from fastprof.model.numbers import quantity
from fastprof.model.table import Table
from fastprof.page.table import first_rows
from fastprof.profile.data import ProfileData
from fastprof.readers.detect import FileFormat, InputFile, contents_of, detect_trace
from fastprof.readers.sqlite.database import Database, Progress

_PEAKS = ("gpu", "peak", "bandwidth")
_PER_GPU = ("steps",)  # reports with rows for each GPU
_MOST_GPUS = 100  # of a page
_WITH_WHERE = ("summary", "layers", "lines", "roofline")  # that the user's `where` limits
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
    find : words that find on the time line what it is about; "" for nothing
    """

    title: str
    badge: str = ""
    rows: Sequence[tuple[str, str]] = ()
    find: str = ""


@dataclass(frozen=True)
class Link:
    """A link to another file.

    Parameters
    ----------
    text : what the reader sees
    target : path of the file, relative to the page
    """

    text: str
    target: str


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
    folded : like tables, below them; the reader unfolds them
    missing : what is not recorded here, and how to record it; one sentence each
    links : to other pages, below the lead
    """

    id: str
    title: str
    lead: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    charts: Sequence[Chart] = ()
    cards: Sequence[Card] = ()
    tables: Sequence[tuple[str, Table]] = ()
    folded: Sequence[tuple[str, Table]] = ()
    missing: Sequence[str] = ()
    links: Sequence[Link] = ()


class Shown(NamedTuple):
    """What a page has of a report.

    Parameters
    ----------
    table : its first rows
    rest : a note on the other rows, if there are any
    """

    table: Table
    rest: tuple[str, ...]


class PageSource:
    """A profile and its reports.

    Parameters
    ----------
    profile : the profile
    peaks : gpu, peak and bandwidth; see `fastprof.model.devices.with_figures`
    ahead : makes reports on another thread
    where : the work that charts and tables of kernels show, see `fastprof.analysis.selection`; the
        answer, the time line and tables of other things show all
    """

    def __init__(
        self,
        profile: ProfileData,
        peaks: Mapping[str, Any] | None = None,
        ahead: Ahead | None = None,
        where: Where | None = None,
    ) -> None:
        self.profile = profile
        self.where = where or None
        self.peaks = {name: peak for name, peak in (peaks or {}).items() if peak is not None}
        self._tables: dict[str, Shown] = {}
        self._ahead = Ahead() if ahead is None else ahead

    @computed_once
    def facts(self) -> Facts:
        """The facts that findings use: steps, their windows, idle time by cause."""
        return Facts(self.profile, None, devices_with(self.profile, **self.peaks))

    def begin(self, names: Iterable[str]) -> None:
        """Make reports without options on the other thread; `shown` waits for them."""
        for name in names:
            self._ahead.begin(_key(name, {}), self._make_if_few, name)

    def table(self, name: str, **options: Any) -> Table:
        """A report, with the user's peaks if it takes them; see `Profile.report`.

        Raises
        ------
        ReportError, StepsError, BadInputError
            See the report.
        """
        return self._make(name, options)

    def shown(self, name: str, **options: Any) -> Shown:
        """What the page has of a report, made once; see `table`."""
        key = _key(name, options)
        if key not in self._tables:
            ahead = self._ahead.result(key, self._make_shown, name, options)
            self._tables[key] = ahead or self._make_shown(name, options)
        return self._tables[key]

    def whole(self, name: str) -> Shown:
        """A report of all work, also where `where` limits the page."""
        return self.shown(name) if self.where is None else self.shown(name, where=None)

    def _make_if_few(self, name: str) -> Shown | None:
        """A report of a capture with few steps; None for others, whose reports are made in turn."""
        return self._make_shown(name, {}) if len(self.facts.windows) <= FEW_CELLS else None

    def _make_shown(self, name: str, options: Mapping[str, Any]) -> Shown:
        return Shown(*first_rows(self._make(name, options)))

    def _make(self, name: str, options: Mapping[str, Any]) -> Table:
        omitted = self.profile.source.host_omitted
        if omitted and "host" in find(name).needs and name not in _WITHOUT_HOST:
            return Table({name: Ints(np.empty(0, np.int64))}, (), notes=(omitted,))
        taken = {option.name for option in find(name).options} & set(_PEAKS)
        peaks = {text: value for text, value in self.peaks.items() if text in taken}
        where, notes = self._busiest if name in _PER_GPU else ({}, ())
        if self.where is not None and name in _WITH_WHERE:
            options = {"where": self.where, **options}
        table = report_of(self.profile, name, **peaks, **options, **where)
        return replace(table, notes=(*notes, *table.notes)) if notes else table

    @computed_once
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
            name: tuple("na" if number < 0 else str(number) for number in np.unique(column[chosen]))
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


Opened = TypeVar("Opened", bound=ProfileData)


def open_for_page(
    path: str | os.PathLike[str],
    opened: Callable[..., Opened],
    progress: Progress | None = None,
    **options: Any,
) -> Opened:
    """Open a trace; without the host's side if the page would not fit in memory with it.

    `profile.source.host_omitted` says so.

    opened : `fastprof.profile.load.load`, or what makes a Profile with the same options
    """
    if not os.path.isfile(path):
        return opened(path, progress, host=True, **options)
    file, notices = detect_trace(path).exported(progress)
    needed, (limit, source) = memory_of_page(file), memory.available()
    profile = opened(path, progress, host=needed <= limit, **options)
    if needed > limit:
        profile.source.omit_host(
            f"API calls and the times of ranges are left out: with them, the page takes about "
            f"{format_size(needed)} of memory, but {source} {format_size(limit)}; use a larger "
            "machine, or record less (nsys --duration, --capture-range)",
        )
    profile.warnings[:0] = notices
    return profile


def memory_of_page(file: InputFile) -> float:
    """Bytes that the page of a trace takes, of which the host's side is about half.

    0 if not known: other formats than SQLite.

    Raises
    ------
    BadInputError
        The file cannot be read or is damaged.
    """
    if file.format is not FileFormat.SQLITE:
        return 0.0
    with Database(file.path) as database:
        work, ranges, calls = contents_of(database)
    return (
        memory.OF_PAGE
        + work * memory.OF_KERNEL_ON_PAGE
        + ranges * memory.OF_RANGE_ON_PAGE
        + calls * memory.OF_CALL_ON_PAGE
    )
