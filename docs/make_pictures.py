"""Write the pictures of README and of docs/first_trace.md: `python docs/make_pictures.py`.

Needs Chromium and Playwright (fastprof[browser]); the picture of the first trace also the real
traces. A picture keeps the digest of what it shows, so that a test finds it stale.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import fastprof

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
IMAGES = ROOT / "docs" / "images"
DATA = Path(os.environ.get("FASTPROF_DATA", ROOT.parent / "shared" / "data"))
_KEYWORD = b"Source"  # of the text in a picture
# README shows the figures and the first paragraphs of three sections.
_EXCERPT = """() => {
    const kept = ['answer', 'where-time-goes', 'time-line'];
    const others = [...document.querySelectorAll('section')].filter(({ id }) => !kept.includes(id));
    const names = '.card, .table, .missing, .note, details, .skip, footer';
    const parts = document.querySelectorAll(names);
    for (const each of [...others, ...parts]) each.remove();
}"""


class Picture(NamedTuple):
    """A picture of a page: its file, the trace, its size, and whether parts are left out."""

    name: str
    trace: Path | None  # None: what `make demo` generates
    width: int
    height: int | None  # None: the whole page
    is_excerpt: bool


PICTURES = [
    Picture("report.png", None, 1200, None, True),
    Picture(
        "first_trace.png", DATA / "kineto" / "resnet50_2021_stack_memory.json.gz", 1280, 1000, False
    ),
]


def demo(folder: Path) -> Path:
    """The export of `make demo`."""
    from bench.generate import generate

    path = folder / "net.sqlite"
    generate(path, 1000, 1)
    return path


def digest(profile: fastprof.Profile) -> str:
    """Digest of what a page shows: its styles and scripts, and the figures of the trace."""
    assets = files("fastprof.page").joinpath("assets")
    parts = [
        assets.joinpath(name).read_text("utf-8")
        for name in sorted(each.name for each in assets.iterdir() if each.is_file())
    ]
    parts += [profile.advise().text(), profile.steps().text(), profile.summary().text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG: type and contents."""
    place = 8
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        yield data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        place += length + 12


def source_of(path: Path) -> str:
    """The digest that a picture keeps, "" for none."""
    for kind, content in _chunks(path.read_bytes()):
        if kind == b"tEXt" and content.startswith(_KEYWORD + b"\0"):
            return content.partition(b"\0")[2].decode("latin-1")
    return ""


def with_source(data: bytes, text: str) -> bytes:
    """A PNG with a digest after its header."""
    content = _KEYWORD + b"\0" + text.encode("latin-1")
    parts = [data[:8]]
    for kind, own in _chunks(data):
        pieces = [(kind, own)] + ([(b"tEXt", content)] if kind == b"IHDR" else [])
        for name, body in pieces:
            check = struct.pack(">I", zlib.crc32(name + body))
            parts.append(struct.pack(">I", len(body)) + name + body + check)
    return b"".join(parts)


def draw(picture: Picture, folder: Path) -> bytes:
    """The PNG of a picture."""
    from playwright.sync_api import sync_playwright

    profile = fastprof.open(picture.trace or demo(folder), copies=True)
    page_file = folder / "page.html"
    profile.report().save(page_file)
    chromium = os.environ.get("FASTPROF_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        size = {"width": picture.width, "height": picture.height or 1000}
        page = browser.new_context(offline=True, viewport=size, reduced_motion="reduce").new_page()
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        if picture.is_excerpt:
            page.evaluate(_EXCERPT)
        page.wait_for_timeout(300)
        data = page.screenshot(full_page=picture.height is None)
        browser.close()
    return with_source(data, digest(profile))


def main() -> None:
    for picture in PICTURES:
        if picture.trace is not None and not picture.trace.exists():
            print(f"{picture.name}: left as it is, without {picture.trace}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            data = draw(picture, Path(folder))
        (IMAGES / picture.name).write_bytes(data)
        print(f"{picture.name}: {len(data) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
