"""Overview: the result of `overview`, as text, Markdown and HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from fastprof._system.classes import dataclass
from fastprof.analysis.advice.report import saved_text
from fastprof.analysis.overview.columns import ROWS
from fastprof.errors import ReportError
from fastprof.model.names import printable
from fastprof.model.quantity import quantity
from fastprof.model.table import Table
from fastprof.model.table_text import markdown_text, side_by_side
from fastprof.model.tables import Tables

_WIDTH: Final = 100
_LEAST: Final = 90  # of two tables side by side
_BETWEEN: Final = 4
_MOST_FINDINGS: Final = 3
_MOST_LINES: Final = 2  # of a sentence
_NAMES: Final = {"ops": "GPU work"}
_PAIRS: Final = (("ops", "idle"), ("layers", "lines"))


@dataclass(frozen=True)
class Overview(Tables):
    """The tables `ops`, `idle`, `layers`, `lines` and `findings`; `text()` is one screen.

    Parameters
    ----------
    lead : the file, the GPUs, the step, and how much is known: one line each
    commands : what to run next, with the question that each command answers
    """

    lead: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()

    def text(self, limit: int | None = ROWS, *, width: int | None = None) -> str:
        """One screen of at most 100 columns.

        limit : most rows of a table; None for all
        width : most characters per line
        """
        width = min(width or _WIDTH, _WIDTH)
        lines = [*_sentence(self.facts["answer"], width, rest=0), "", *self._lead(width), ""]
        for names in _PAIRS:
            lines += [*self._pair(names, limit, width), ""]
        lines += self._findings(width)
        lines += self._next()
        return "".join(f"{printable(line).rstrip()}\n" for line in lines)

    def markdown(self, limit: int | None = ROWS) -> str:
        """Markdown tables below the lines of the lead."""
        lines = (self.facts["answer"], *self.lead)
        lead = "".join(f"{markdown_text(line)}\n\n" for line in lines)
        return lead + super().markdown(limit)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text())}</pre>"

    def _one_only(self, option: str) -> ReportError:
        return ReportError(
            f"{option}: expected a report with one table, found {len(self)} in overview; run "
            "fastprof summary, idle, layers, lines or advise"
        )

    def _lead(self, width: int) -> Iterator[str]:
        for line in self.lead:
            yield from textwrap.wrap(
                line, width, subsequent_indent="  ", max_lines=_MOST_LINES, placeholder=" …"
            ) or [""]

    def _pair(self, names: Sequence[str], limit: int | None, width: int) -> list[str]:
        """Two tables side by side, or one above the other if the width is small."""
        is_wide = width >= _LEAST
        own = (width - _BETWEEN) // 2 if is_wide else width
        blocks = [self._block(name, limit, own) for name in names]
        if not is_wide:
            return [*blocks[0], "", *blocks[1]]
        return side_by_side([[line.ljust(own) for line in blocks[0]], blocks[1]], _BETWEEN)

    def _block(self, name: str, limit: int | None, width: int) -> list[str]:
        table = self[name]
        if not table.n_rows:
            text = f"{_NAMES.get(name, name)}: {' '.join(table.notes) or 'none'}"
            return textwrap.wrap(text, width, subsequent_indent="  ")
        headings = (
            replace(each, in_text=each.in_text and each.key != "flag") for each in table.headings
        )
        plain = replace(
            table, headings=tuple(headings), title="", lead=(), notes=(), total={}, layout=None
        )
        lines = plain.text(limit, width=width).splitlines()
        marks = (line for each in _marks(table, limit) for line in textwrap.wrap(each, width))
        return [*(line for line in lines if not line.startswith("(too narrow ")), *marks]

    def _findings(self, width: int) -> Iterator[str]:
        """The largest savings, and what to record."""
        table = self["findings"]
        rows = [row for row in table.rows() if row["saving_ns"]]
        total, is_bound = table.total, table.facts["is_bound"]
        saved = saved_text(total["saving_ns"], total["share"], is_bound)
        groups = dict.fromkeys(row["together"] for row in rows if row["together"])
        shared = "".join(f"; {', '.join(group.split(','))} only together" for group in groups)
        of_all = f"{saved} of {self._step()}{shared}" if rows else f"findings: {saved}"
        yield from _sentence(of_all, width)
        verb = "at most" if is_bound else "saves"
        for number, row in enumerate(rows[:_MOST_FINDINGS], 1):
            saving = f"{verb} {quantity(row['saving_ns'], 'ns')}, {row['share']:.0%}"
            yield from _sentence(f"{number}. {row['id']} ({saving}): {row['what']}", width)
            yield from _sentence(_first_remedies(row["remedy"], width - 3), width, 3, 3)
        for row in table.rows():
            if row["id"] == "capture":
                yield from _sentence(f"record: {row['remedy']}", width)
        yield ""

    def _step(self) -> str:
        unit = self.facts["steps"]["unit"]
        name = "a step" if unit == "step" else f"the {unit}"
        return f"{name} of {quantity(self.facts['findings_of_ns'], 'ns')}"

    def _next(self) -> Iterator[str]:
        width = max((len(why) for _, why in self.commands), default=0)
        for number, (command, why) in enumerate(self.commands):
            yield f"{'      ' if number else 'next: '}{why.ljust(width)}  {command}"


def _first_remedies(text: str, width: int) -> str:
    """The first remedy, and those after it that fit on its line; `advise` names them all."""
    first, *others = text.split("; ")
    for other in others:
        if len(first) + len(other) + 2 > width:
            break
        first = f"{first}; {other}"
    return first


def _marks(table: Table, limit: int | None) -> list[str]:
    """The flags of the shown rows, each with its rows."""
    if "flag" not in table:
        return []
    marked: dict[str, list[str]] = {}
    names = [
        name for name in ("dir", "op", "range", "kind", "kernel", "layer", "line") if name in table
    ]
    for row, flag in enumerate(table["flag"][:limit].tolist()):
        if flag:
            words = (table.columns[name].at(row) for name in names)
            marked.setdefault(flag, []).append(" ".join(str(each) for each in words if each))
    return [f"{flag}: {', '.join(rows)}" for flag, rows in marked.items()]


def _sentence(text: str, width: int, first: int = 0, rest: int = 3) -> list[str]:
    """At most two lines; `first`, `rest`: their indents."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * rest,
        max_lines=_MOST_LINES,
        placeholder=" …",
        break_on_hyphens=False,
    )
