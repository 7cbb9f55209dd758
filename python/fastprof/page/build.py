"""Sections -> one HTML file: template, styles, scripts and a content security policy."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from string import Template
from typing import Final
from urllib.parse import quote

from fastprof._system.classes import NamedTuple
from fastprof._version import __version__
from fastprof.model.table import Table
from fastprof.page.section import Card, Chart, Fact, Link, Section
from fastprof.page.table import packed, shown, table_html

_MANY: Final = 4  # tables
_FRAME: Final = ("page.css", "page.js", "table.js")


class Rendered(NamedTuple):
    """A section as HTML, which takes less memory than its arrays and tables.

    Parameters
    ----------
    id, title : see `Section`
    assets : the files in `assets` that its charts need, in the order of their use
    html : the element
    """

    id: str
    title: str
    assets: tuple[str, ...]
    html: str


def rendered(section: Section) -> Rendered:
    """A section as HTML."""
    return Rendered(section.id, section.title, tuple(_assets(section)), _section(section))


def build(
    title: str,
    about: Sequence[str],
    sections: Iterable[Section | Rendered],
    links: Sequence[Link] = (),
) -> str:
    """The HTML of a page.

    title : first heading
    about : short texts below it
    sections : one is needed at a time
    links : to other pages, after these texts
    """
    parts = [
        section if isinstance(section, Rendered) else rendered(section) for section in sections
    ]
    names = list(dict.fromkeys(chain(_FRAME, *(part.assets for part in parts))))
    styles = [asset(name) for name in names if name.endswith(".css")]
    scripts = [asset(name) for name in names if name.endswith(".js")]
    return Template(asset("page.html")).substitute(
        policy=_policy(scripts, styles),
        styles="".join(f"<style>{style}</style>\n" for style in styles),
        scripts="".join(f"<script>{script}</script>\n" for script in scripts),
        title=shown(title),
        about="".join(f"<li>{shown(text)}</li>" for text in about)
        + "".join(f"<li>{_link(link)}</li>" for link in links),
        links="".join(f'<li><a href="#{part.id}">{shown(part.title)}</a></li>' for part in parts),
        sections="\n".join(part.html for part in parts),
        version=__version__,
    )


def _assets(section: Section) -> Iterator[str]:
    for chart in section.charts:
        yield from chart.assets
        yield f"{chart.script}.js"


@cache
def asset(name: str) -> str:
    """The text of a file in `assets`."""
    return files("fastprof.page").joinpath("assets", *name.split("/")).read_text("utf-8")


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The page may run and show only its own parts, and load nothing."""
    rules = {
        "default-src": ["'none'"],
        "script-src": list(map(_hash, scripts)),
        "style-src": list(map(_hash, styles)),
        "img-src": ["data:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _section(section: Section) -> str:
    charts = (_chart(f"{section.id}-chart-{i}", chart) for i, chart in enumerate(section.charts, 1))
    tables = [
        table_html(f"{section.id}-table-{i}", caption, table)
        for i, (caption, table) in enumerate((*section.tables, *section.folded), 1)
    ]
    n_open = len(section.tables)
    parts = [
        f'<section id="{section.id}" aria-labelledby="{section.id}-title">',
        f'<h2 id="{section.id}-title">{shown(section.title)}</h2>',
        *(f"<p>{shown(text)}</p>" for text in section.lead),
        _links(section.links),
        _facts(section.facts),
        *charts,
        *map(_card, section.cards),
        _jump(section),
        *tables[:n_open],
        *map(_folded, section.folded, tables[n_open:]),
        _missing(section.missing),
        "</section>",
    ]
    return "\n".join(filter(None, parts))


def _folded(captioned: tuple[str, Table], table: str) -> str:
    return f"<details><summary>{shown(captioned[0])}</summary>{table}</details>"


def _jump(section: Section) -> str:
    """Links to the tables of a section with many."""
    if len(section.tables) < _MANY:
        return ""
    links = (
        f'<li><a href="#{section.id}-table-{i}">{shown(caption)}</a></li>'
        for i, (caption, _) in enumerate(section.tables, 1)
    )
    return f'<ul class="jump" aria-label="Tables">{"".join(links)}</ul>'


def _link(link: Link) -> str:
    target = quote(link.target.encode("utf-8", "surrogateescape"))
    return f'<a href="./{shown(target)}">{shown(link.text)}</a>'


def _links(links: Sequence[Link]) -> str:
    if not links:
        return ""
    items = "".join(f"<li>{_link(link)}</li>" for link in links)
    return f'<ul class="jump" aria-label="Pages">{items}</ul>'


def _facts(facts: Sequence[Fact]) -> str:
    if not facts:
        return ""
    return f'<dl class="facts">{"".join(map(_fact, facts))}</dl>'


def _fact(fact: Fact) -> str:
    # A CSP without 'unsafe-inline' forbids style attributes, so the bar is an element with a value.
    bar = (
        ""
        if fact.share is None
        else f'<dd class="bar"><progress max="1" value="{fact.share:.4f}"'
        f' aria-label="{shown(fact.name)}"></progress></dd>'
    )
    about = f'<dd class="about">{shown(fact.about)}</dd>' if fact.about else ""
    return (
        f'<div><dt>{shown(fact.name)}</dt><dd class="value">{shown(fact.value)}</dd>{bar}{about}'
        "</div>"
    )


def _chart(name: str, chart: Chart) -> str:
    return (
        f"<figure><figcaption>{shown(chart.label)}</figcaption>"
        f'<div class="chart" id="{name}" data-script="{chart.script}"></div>'
        f'<script type="application/octet-stream" id="{name}-data">'
        f"{packed(chart.data, chart.arrays)}</script></figure>"
    )


def _card(card: Card) -> str:
    badge = f'<span class="badge">{shown(card.badge)}</span>' if card.badge else ""
    rows = "".join(f"<dt>{shown(name)}</dt><dd>{shown(text)}</dd>" for name, text in card.rows)
    find = (
        f'<button type="button" class="more" data-find="{shown(card.find)}" hidden>'
        "Show on the time line</button>"
        if card.find
        else ""
    )
    return (
        f'<article class="card"><h3>{shown(card.title)}{badge}</h3><dl>{rows}</dl>{find}</article>'
    )


def _missing(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    return f'<ul class="missing">{"".join(f"<li>{shown(text)}</li>" for text in texts)}</ul>'
