"""A column and the notation of a format -> the cells that the compiled writer prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastprof._core._rows import RowWriter
from fastprof.model.columns import Column, Ints, Lists, RepeatedInts, SeqMarkers, Values

Brackets = tuple[bytes, bytes, bytes]

# Making the text of a number here takes as long as writing about so many.
_WORTH_A_TEXT = 16


@dataclass(frozen=True)
class Notation:
    """How a format writes what a column holds.

    Attributes
    ----------
    none : str
        What is not known.
    empty : str
        A list without numbers.
    triple, numbers : tuple of bytes
        What opens, separates and closes three numbers, and a list of numbers.
    text : callable
        Turns a value of `Values` into its text.
    quote : str
        The quote around each text of a list of texts.
    escape : callable
        Makes a text fit between two quotes.
    width : int, optional
        Cells have this width: numbers at least and on the right, others exactly and on the left.
    is_right : bool
        Values stand on the right, too, and are not cut.
    keeps_end : bool
        What is too wide is cut on the left, and begins with an ellipsis.
    """

    none: str
    empty: str
    triple: Brackets
    numbers: Brackets
    text: Callable[[Any], str]
    quote: str = ""
    escape: Callable[[str], str] = str
    width: int | None = None
    is_right: bool = False
    keeps_end: bool = False

    def fit(self, text: str) -> str:
        """Cut and pad a text to the width, if there is one."""
        if self.width is None:
            return text
        if self.is_right:
            return text.rjust(self.width)
        if self.keeps_end and len(text) > self.width:
            return "…" + text[len(text) - self.width + 1 :]
        return text[: self.width].ljust(self.width)


def encode(text: str) -> bytes:
    """UTF-8; bytes of the input that were no UTF-8 come out as they came in."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def add_cell(
    writer: RowWriter, before: str, column: Column | SeqMarkers, notation: Notation
) -> None:
    """Add a column to the writer; each distinct value is formatted once, here.

    Parameters
    ----------
    writer : RowWriter
    before : str
        Written before each cell.
    column : Column or SeqMarkers
        As long as the writer's other columns.
    notation : Notation
    """
    _ADD[type(column)](writer, encode(before), column, notation)


def _add_ints(writer: RowWriter, before: bytes, column: Ints, notation: Notation) -> None:
    values = np.ascontiguousarray(column.values)
    if values.dtype != np.int32:
        values = values.astype(np.int64, copy=False)
    known: dict[str, Any] = {
        "none": column.none,
        "none_text": encode(notation.none),
        "width": notation.width or 0,
    }
    if values.ndim == 2:
        writer.add_triples(before, values, brackets=notation.triple, **known)
    else:
        writer.add_ints(before, values, **known)


def _add_repeated(
    writer: RowWriter, before: bytes, column: RepeatedInts, notation: Notation
) -> None:
    if len(column.distinct) * _WORTH_A_TEXT > len(column):
        _add_ints(writer, before, column, notation)
        return
    texts = [encode(_text_of(value, column.none, notation)) for value in column.distinct.tolist()]
    writer.add_texts(before, np.ascontiguousarray(column.ids), texts, none_text=b"")


def _text_of(value: int | list[int], none: int, notation: Notation) -> str:
    """A number, or three, as a writer of numbers puts them."""
    width = notation.width or 0
    if isinstance(value, int):
        return (notation.none if value == none else str(value)).rjust(width)
    begin, between, end = (part.decode() for part in notation.triple)
    text = notation.none if value[0] == none else begin + between.join(map(str, value)) + end
    return text.ljust(width)[: width or None]


def _add_values(writer: RowWriter, before: bytes, column: Values, notation: Notation) -> None:
    texts = [encode(notation.fit(notation.text(value))) for value in column.values]
    none_text = encode(notation.fit(notation.none))
    writer.add_texts(before, np.ascontiguousarray(column.ids), texts, none_text=none_text)


def _add_lists(writer: RowWriter, before: bytes, column: Lists, notation: Notation) -> None:
    writer.add_lists(
        before,
        np.ascontiguousarray(column.offsets),
        np.ascontiguousarray(column.values),
        none_text=encode(notation.empty),
        brackets=notation.numbers,
        width=notation.width or 0,
    )


def _add_seqmarkers(
    writer: RowWriter, before: bytes, column: SeqMarkers, notation: Notation
) -> None:
    writer.add_seqmarkers(
        before,
        np.ascontiguousarray(column.frame_of_row, np.int32),
        np.ascontiguousarray(column.frame_parent, np.int32),
        np.ascontiguousarray(column.range_of_frame, np.int32),
        np.ascontiguousarray(column.label_of_range, np.int32),
        np.ascontiguousarray(column.seq_of_range, np.int64),
        np.ascontiguousarray(column.op_id_of_range, np.int64),
        np.ascontiguousarray(column.is_torch, np.uint8),
        [encode(notation.escape(head)) for head in column.heads],
        [encode(notation.escape(tail)) for tail in column.tails],
        quote=notation.quote.encode(),
    )


_ADD: dict[type, Callable[..., None]] = {
    Ints: _add_ints,
    RepeatedInts: _add_repeated,
    Values: _add_values,
    Lists: _add_lists,
    SeqMarkers: _add_seqmarkers,
}
