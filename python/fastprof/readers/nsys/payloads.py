"""NVTX ranges with a binary payload, decoded by the schemas of the export.

NCCL describes its calls so: communicator, message size, peer. `nsys export` writes payloads with
--include-blobs=true. A blob is a header of 32 bytes (domain, schema, payload size, end) and the
payload, with the fields that NVTX_PAYLOAD_SCHEMA_ENTRIES lists. Types are numbered as in NVTX's
nvToolsExtPayload.h.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

import numpy as np

from fastprof._core import _column, _pools
from fastprof._core._pools import alike
from fastprof.model.timeline import RecordedEvents
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.ranges import table_of
from fastprof.readers.nsys.strings import texts_of
from fastprof.readers.sqlite.database import Database, Field

_ENTRIES: Final = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_COLUMNS: Final = ("domainId", "schemaId", "type", "name", "offset", "arrayOrUnionDetail")
_BLOB: Final = "binaryData"
_HEADER: Final = struct.Struct("<IxxxxIxxxxQQ")
# Formats of the numeric types.
_FORMATS: Final = dict(enumerate("bBhHiIqQqQbBhHiIqQfd", start=1)) | {22: "Q", 23: "Q"}

Schemas = dict[tuple[int, int], list[tuple[str, int, str]]]  # name, offset, format


def read(database: Database) -> RecordedEvents | None:
    """The ranges; their names are JSON: the payload's fields, and the range's name as `name`.

    None if the export contains no payloads.
    """
    schemas, table = _schemas(database), table_of(database)
    if not schemas or _BLOB not in database.tables.get(table, ()):
        return None
    pools, blobs = schema.Pools(), _pools.Names()
    keep = _column.Among({domain for domain, _ in schemas})
    columns = database.scan(table, _fields(pools, blobs), keep=keep, capacity=0)
    name, first = alike([columns[key] for key in _NAMED_BY])
    texts, strings = pools.labels.texts(), texts_of(database, pools.strings)
    payloads = blobs.texts()
    names: list[str | None] = []
    for row in first.tolist():
        domain, text, string, blob = (int(columns[key][row]) for key in _NAMED_BY)
        found = _decoded(bytes.fromhex(payloads[blob]), domain, schemas)
        label = texts[text] if text >= 0 else strings[string] if string >= 0 else None
        names.append(None if found is None else json.dumps(found | {"name": label}))
    rows = np.flatnonzero(np.array([*(each is not None for each in names), False])[name])
    return RecordedEvents(
        start=columns["start"][rows],
        end=np.maximum(columns["start"], columns["end"])[rows],
        thread=columns["globalTid"][rows],
        name=name[rows],
        names=names,
        threads=pools.thread_ids(),
    )


_NAMED_BY: Final = ("domainId", "text", "textId", _BLOB)


def _fields(pools: schema.Pools, blobs: _pools.Names) -> list[Field]:
    return [
        Field("domainId", _column.I64, needed=True),  # the filter column
        Field("start", _column.I64, needed=True),
        Field("end", _column.I64, needed=True),
        Field("globalTid", _column.KEY, pool=pools.threads),
        Field("text", _column.TEXT, pool=pools.labels),
        Field("textId", _column.KEY, pool=pools.strings),
        Field(_BLOB, _column.TEXT, pool=blobs, sql=f"hex({_BLOB})"),
    ]


def _schemas(database: Database) -> Schemas:
    """The numeric fields of each schema, by domain and schema; arrays are left out."""
    if not database.tables.get(_ENTRIES, {}).keys() >= set(_COLUMNS):
        return {}
    found: Schemas = {}
    for domain, number, kind, name, offset, array in database.rows(
        f"SELECT DISTINCT {', '.join(_COLUMNS)} FROM {_ENTRIES}"
    ):
        if kind in _FORMATS and not array and isinstance(name, str):
            fields = found.setdefault((domain, number), [])
            fields.append((name, offset or 0, f"<{_FORMATS[kind]}"))
    return found


def _decoded(blob: bytes, domain: int, schemas: Schemas) -> dict[str, Any] | None:
    """The fields of a payload; None if the blob has another layout."""
    if len(blob) < _HEADER.size:
        return None
    _, number, size, _ = _HEADER.unpack_from(blob)
    payload = blob[_HEADER.size :][:size]
    if (domain, number) not in schemas or len(payload) < size:
        return None
    return {
        name: struct.unpack_from(kind, payload, offset)[0]
        for name, offset, kind in schemas[domain, number]
        if 0 <= offset <= size - struct.calcsize(kind)
    }
