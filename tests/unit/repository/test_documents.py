"""Markdown pages: length of lines, links, names of modules, messages quoted from the sources."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import publish

from support.documents import DOCUMENTS, ROOT

PAGES = (*DOCUMENTS, "CHANGELOG.md", "bench/README.md")
LIMIT = 119


def lines_outside_fences(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page that are not in a fenced block, numbered from 1."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def long_lines(text: str) -> list[int]:
    """The numbers of the lines of prose that are too long, except those of `bench publish`."""
    generated = re.search(rf"{publish.BEGIN}.*?{publish.END}", text, re.DOTALL)
    if generated is not None:
        text = text.replace(generated[0], "\n" * generated[0].count("\n"))
    return [
        number
        for number, line in lines_outside_fences(text)
        if len(line) > LIMIT and not line.startswith("|")
    ]


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as GitHub derives them."""
    titles = [line.lstrip("# ") for _, line in lines_outside_fences(text) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(page: Path) -> list[str]:
    """The targets of links within the repository that do not exist."""
    text = "\n".join(line for _, line in lines_outside_fences(page.read_text()))
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if "://" in target or (file.exists() and not anchor):
            continue
        if not file.exists() or anchor not in anchors(file.read_text()):
            dead.append(target)
    return dead


def source() -> str:
    """All sources of the package, with adjacent string literals joined."""
    files = [
        file
        for folder in ("python/fastprof", "src/fastprof", "csrc")
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in {".py", ".pyx", ".c", ".h"}
    ]
    text = "\n".join(file.read_text() for file in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


def quoted_messages(page: str, heading: str) -> list[str]:
    """The messages in the first column of the tables below a heading of a page."""
    rows = (ROOT / "docs" / page).read_text().split(f"\n{heading}\n")[1].split("\n## ")[0]
    cells = [row.split(" | ")[0] for row in rows.splitlines() if row.startswith("| ")]
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]


def missing_modules(text: str) -> list[str]:
    """The modules and C files that a text names and the repository does not have."""
    rooms = "analysis|annotate|api|cli|exports|model|ops|page|profile|ranks|readers|runs|writers"
    modules = re.findall(rf"(?<![\w/])(?:{rooms}|_core|_system)/[\w/.]*\w", text)
    stages = re.findall(r"\bfp_[a-z]+\b(?!\*)", text)
    package, csrc = ROOT / "python" / "fastprof", ROOT / "csrc"
    return [
        *(m for m in modules if not ((package / m).exists() or (package / f"{m}.py").is_file())),
        *(name for name in stages if not any(csrc.rglob(f"{name}.h"))),
    ]


def unknown_parts(message: str, text: str) -> list[str]:
    """The parts of a quoted message, separated by `…`, that the text does not contain."""
    parts = [part.strip() for part in message.removeprefix("warning: ").split("…")]
    return [part for part in parts if part not in text]


@pytest.mark.parametrize("name", PAGES)
def test_prose_is_at_most_119_characters_wide(name: str) -> None:
    assert long_lines((ROOT / name).read_text()) == []


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files_and_headings(name: str) -> None:
    assert dead_links(ROOT / name) == []


def test_quoted_messages_are_in_the_sources() -> None:
    messages = quoted_messages("messages.md", "## Messages")
    reasons = quoted_messages("columns.md", "### Why a cost is unknown")
    assert len(messages) > 20 and len(reasons) > 5
    text = source()
    assert [part for message in messages + reasons for part in unknown_parts(message, text)] == []


@pytest.mark.parametrize("name", ["architecture", "design", "contributing"])
def test_modules_that_a_page_names_exist(name: str) -> None:
    assert missing_modules((ROOT / "docs" / f"{name}.md").read_text()) == []


def test_tables_and_fenced_blocks_may_be_wide() -> None:
    wide = "x" * 120
    assert long_lines(f"{wide}\n```\n{wide}\n```\n| {wide} |\n- {wide}") == [1, 6]
    assert long_lines(f"{publish.BEGIN}\n{wide}\n{publish.END}\n{wide}") == [4]


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# `b --x`: a Title\n")
    page = tmp_path / "a.md"
    page.write_text("[1](b.md) [2](b.md#b---x-a-title) [3](#a) [4](c.md) [5](https://x.org/y.md)\n")
    assert dead_links(page) == ["#a", "c.md"]


def test_a_message_that_no_source_has_is_found() -> None:
    assert unknown_parts("warning: … rows lack …, again", "{n} rows lack {name}") == [", again"]


def test_a_module_that_does_not_exist_is_found() -> None:
    text = (
        "`cli/prof.py`, `cli/`, readers/nsys and `ops/nothing.py`; fp_nest, fp_nothing, tests/ops/x"
    )
    assert missing_modules(text) == ["ops/nothing.py", "fp_nothing"]
