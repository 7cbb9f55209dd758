"""The pages of docs/ by topic: those of the package, in a checkout those of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.mcp.answer import LINES, ToolAnswer, shortened
from fastprof.model.heading import unknown_name

_HEADING: Final = regex(r"^(#{1,3}) (.+)$", re.MULTILINE)
_OF_DEVELOPERS: Final = ("architecture", "contributing", "design")
_MOST_OTHERS: Final = 8
_MOST_TITLES: Final = 80  # of a page
_MOST_CHARACTERS: Final = 400  # of a line


class GuideSection(NamedTuple):
    """A section of a page.

    Parameters
    ----------
    page : name of the page, without suffix
    title : its heading
    text : its lines
    """

    page: str
    title: str
    text: str

    @property
    def topic(self) -> str:
        """PAGE/TITLE."""
        return f"{self.page}/{self.title}"


def folder() -> Path:
    """The directory of the pages.

    Raises
    ------
    BadInputError
        Neither the package nor a checkout around it has them.
    """
    inside = Path(__file__).parent / "pages"
    for path in (inside, Path(__file__).parents[3] / "docs"):
        if (path / "guide.md").is_file():
            return path
    raise BadInputError("the pages of docs are not installed: install fastprof from a wheel")


@cache
def sections() -> tuple[GuideSection, ...]:
    """All sections of all pages for users; a section ends where the next one begins."""
    result = []
    for path in sorted(folder().glob("*.md")):
        if path.stem not in _OF_DEVELOPERS:
            result += list(_sections(path.stem, path.read_text(encoding="utf-8")))
    return tuple(result)


def _sections(page: str, text: str) -> Iterator[GuideSection]:
    # A line of a fenced block that begins with `#` is no heading.
    fences = [match.start() for match in re.finditer(r"^```", text, re.MULTILINE)]
    heads = [
        match
        for match in _HEADING.finditer(text)
        if sum(place < match.start() for place in fences) % 2 == 0
    ]
    ends = [*(match.start() for match in heads[1:]), len(text)]
    for match, end in zip(heads, ends, strict=True):
        title = re.sub(r"[`*]", "", match[2])
        yield GuideSection(page, title, text[match.start() : end].strip())


def guide(topic: str | None, offset: int = 0) -> ToolAnswer:
    """The section that fits a topic best, and the names of others; without one, all topics.

    topic : PAGE, PAGE/TITLE, a term or words
    offset : lines of the section to skip

    Raises
    ------
    BadInputError
        Nothing fits.
    """
    if topic is None:
        return _topics()
    result = _ranked(topic)
    entries = _terms(topic)
    if not result and not entries:
        pages = sorted({section.page for section in sections()})
        raise BadInputError(f"{unknown_name('topic', topic, pages)}; guide without one lists all")
    others = [section.topic for section in result[1 : 1 + _MOST_OTHERS]]
    lines = [f"{what}: {text}" for what, text in entries]
    body = result[0].text.splitlines() if result else []
    room = LINES - len(lines) - len(others) - 4
    shown = body[offset : offset + room]
    rest = len(body) - offset - len(shown)
    lines += [*shown, *([f"... {rest} more lines: offset={offset + len(shown)}"] * (rest > 0))]
    lines += ["", "see also:", *others] if others else []
    values = {
        "topic": result[0].topic if result else topic,
        "terms": [{"what": what, "text": text} for what, text in entries],
        "text": "\n".join(shown),
        "n_lines": len(body),
        "offset": offset,
        "cut": f"{rest} more lines: offset={offset + len(shown)}" if rest > 0 else None,
        "others": others,
    }
    return ToolAnswer(values, shortened("\n".join(lines)))


def _topics() -> ToolAnswer:
    by_page: dict[str, list[str]] = {}
    for section in sections():
        by_page.setdefault(section.page, []).append(section.title)
    lines = [f"{page}: {'; '.join(titles)}"[:_MOST_CHARACTERS] for page, titles in by_page.items()]
    lines.append("a topic is PAGE, PAGE/TITLE, a term of a report, or words")
    values: dict[str, Any] = {
        "topics": {page: titles[:_MOST_TITLES] for page, titles in by_page.items()}
    }
    return ToolAnswer(values, shortened("\n".join(lines)))


def _terms(topic: str) -> list[tuple[str, str]]:
    """What the words mean that reports print, as `fastprof explain`."""
    from fastprof.analysis.glossary import explain

    try:
        return [(entry.what, entry.text) for entry in explain(topic)][:5]
    except KeyError:
        return []


def _ranked(topic: str) -> list[GuideSection]:
    """The sections that fit a topic, the best first."""
    page, _, title = (part.strip().lower() for part in topic.partition("/"))
    words = [word for word in re.findall(r"[a-z0-9_-]+", topic.lower()) if len(word) > 1]
    scored = []
    for place, section in enumerate(sections()):
        score = _score(section, page, title, words)
        if score > 0:
            scored.append((-score, place, section))
    return [section for _, _, section in sorted(scored)]


def _score(section: GuideSection, page: str, title: str, words: list[str]) -> float:
    own, text = section.title.lower(), section.text.lower()
    if title:
        if section.page != page:
            return 0.0
        return 100.0 if own == title else 50.0 * (title in own)
    if section.page == page and section.text.startswith("# "):
        return 100.0
    if not words or not all(word in own or word in text for word in words):
        return 0.0
    in_title = sum(word in own for word in words)
    return 10.0 * in_title + sum(min(text.count(word), 5) for word in words) / len(words)
