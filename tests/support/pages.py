"""Reads the pages that `fastprof report` writes: tables and charts back from the HTML."""

import base64
import json
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import numpy as np

__all__ = ["Parsed", "parsed", "unpacked"]

VOID = {"meta", "link", "input", "br", "hr", "img"}


@dataclass
class Parsed(HTMLParser):
    """The elements of a page.

    Attributes
    ----------
    tags : (name, attributes) of each element, in order
    scripts, styles : texts
    payloads : text of each data script by its id
    text : visible text
    """

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    payloads: dict[str, str] = field(default_factory=dict)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self._open.append((tag, attributes))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_data(self, data: str) -> None:
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag == "style":
            self.styles.append(data)
        elif tag != "script":
            self.text += data
        elif "type" in attributes:
            self.payloads[attributes["id"].removesuffix("-data")] = data
        else:
            self.scripts.append(data)

    def attributes(self, tag: str) -> list[dict[str, str]]:
        """The attributes of all elements of a name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table: texts and numbers by column; None where unknown."""
        data, arrays = unpacked(self.payloads[name])
        columns: dict[str, list[Any]] = {}
        for i, column in enumerate(data["columns"]):
            if f"numbers{i}" in arrays:
                numbers = arrays[f"numbers{i}"].tolist()
                columns[column["key"]] = [
                    None if number != number else number for number in numbers
                ]
            else:
                texts = [*column["values"], None]
                columns[column["key"]] = [texts[array] for array in arrays[f"ids{i}"].tolist()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def parsed(html: str) -> Parsed:
    """The elements of a page; fails if an element is not closed."""
    result = Parsed()
    result.feed(html)
    result.close()
    assert not result._open
    return result


def unpacked(text: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Data and arrays of a payload, as page.js decodes them."""
    stream = zlib.decompress(base64.b64decode(text))
    end = 4 + int.from_bytes(stream[:4], "little")
    assert end % 8 == 0
    header = json.loads(stream[4:end])
    arrays = {}
    for name, (dtype, offset, length) in header["arrays"].items():
        assert offset % 8 == 0
        arrays[name] = np.frombuffer(stream, dtype, length, end + offset)
    return header["data"], arrays
