"""Add columns to the compiled row writer in the notation of an output format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._rows import RowWriter
from fastprof._system.classes import dataclass
from fastprof.model.columns import (
    Column,
    Ints,
    Lists,
    RepeatedInts,
    SeqMarkers,
    SharedValues,
    Singles,
    Values,
)

Brackets = tuple[bytes, bytes, bytes]

# Formatting a number in Python takes as long as writing this many numbers in C.
_MIN_REPEATS = 16


@dataclass(frozen=True)
class Notation:
    """How an output format writes the values of a column.

    Attributes
    ----------
    none : str
        Text of an unknown value.
    empty : str
        Text of an empty list.
    triple, numbers : tuple of bytes
        Opening bracket, separator and closing bracket of three numbers, and of a list of numbers.
    text : callable
        Converts a value of `Values` to text.
    quote : str
        Quote around each string in a list of strings.
    escape : callable
        Escapes a string for use between two quotes.
    width : int, optional
        Width of the cells. Numbers are right-aligned and never cut; other values are left-aligned
        and cut.
    is_right : bool
        `Values` are right-aligned and never cut, too.
    keeps_end : bool
        Long text is cut on the left and starts with an ellipsis.
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
        """Cut or pad a text to the width, if one is set."""
        if self.width is None:
            return text
        if self.is_right:
            return text.rjust(self.width)
        if self.keeps_end and len(text) > self.width:
            return "…" + text[len(text) - self.width + 1 :]
        return text[: self.width].ljust(self.width)


def encode(text: str) -> bytes:
    """Encode as UTF-8; bytes of the input that are not UTF-8 are written unchanged."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def add_cell(
    writer: RowWriter, before: str, column: Column | SeqMarkers, notation: Notation
) -> None:
    """Add a column to the writer, formatting each distinct value once.

    Parameters
    ----------
    writer : RowWriter
    before : str
        Text written before each cell.
    column : Column or SeqMarkers
        A column of as many rows as the writer has.
    notation : Notation
    """
    _ADD[type(column)](writer, encode(before), column, notation)


def _numbers(column: Ints) -> npt.NDArray[Any]:
    """The numbers of a column in a type that the writer takes."""
    values = np.ascontiguousarray(column.values)
    return values if values.dtype == np.int32 else values.astype(np.int64, copy=False)


def _add_ints(writer: RowWriter, before: bytes, column: Ints, notation: Notation) -> None:
    values = _numbers(column)
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
    if len(column.distinct) * _MIN_REPEATS > len(column):
        _add_ints(writer, before, column, notation)
        return
    texts = [encode(_text_of(value, column.none, notation)) for value in column.distinct.tolist()]
    writer.add_texts(before, np.ascontiguousarray(column.ids), texts, none_text=b"")


def _text_of(value: int | list[int], none: int, notation: Notation) -> str:
    """Format a number, or three, exactly as `add_ints` and `add_triples` do."""
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


def _add_shared(writer: RowWriter, before: bytes, column: SharedValues, notation: Notation) -> None:
    """A text per shared row, if these texts need less memory than an index per row."""
    texts = [encode(notation.fit(notation.text(value))) for value in column.values]
    none_text = encode(notation.fit(notation.none))
    lengths = np.array([*map(len, texts), len(none_text)], np.int64)
    rows = np.ascontiguousarray(column.rows)
    if int(lengths[column.id_of_row].sum()) > rows.nbytes:
        rows = np.ascontiguousarray(column.ids)
    else:
        texts = [texts[i] if i >= 0 else none_text for i in column.id_of_row.tolist()]
    writer.add_texts(before, rows, texts, none_text=none_text)


def _add_lists(writer: RowWriter, before: bytes, column: Lists, notation: Notation) -> None:
    writer.add_lists(
        before,
        np.ascontiguousarray(column.offsets),
        np.ascontiguousarray(column.values),
        none_text=encode(notation.empty),
        brackets=notation.numbers,
        width=notation.width or 0,
    )


def _add_singles(writer: RowWriter, before: bytes, column: Singles, notation: Notation) -> None:
    writer.add_singles(
        before,
        _numbers(column.numbers),
        none=column.numbers.none,
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
    SharedValues: _add_shared,
    Lists: _add_lists,
    Singles: _add_singles,
    SeqMarkers: _add_seqmarkers,
}
