"""Texts of the string table of an export."""

from __future__ import annotations

from fastprof._core import _column, _pools
from fastprof.readers.nsys import schema
from fastprof.readers.sqlite.database import Database


def texts_of(database: Database, wanted: _pools.Keys) -> list[str | None]:
    """The texts of string ids, None for those that the table lacks."""
    texts = _pools.Names()
    columns = database.scan(
        schema.STRINGS, schema.string_fields(wanted, texts), keep=_column.KnownKeys(wanted)
    )
    found: list[str | None] = [None] * len(wanted)
    text_of = texts.texts()
    for key, text in zip(columns["id"].tolist(), columns["value"].tolist(), strict=True):
        found[key] = text_of[text] if text >= 0 else None
    return found
