"""The API calls and ranges in files of rocmProfileData: both are rows of rocpd_api."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core import _column, _nest, _pools
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.trace import RangeNames, Ranges
from fastprof.readers.rocpd import rpd_schema as schema
from fastprof.readers.sqlite.database import Database, Field

I64, KEY, RANGE = _column.I64, _column.KEY, _column.RANGE

# The name of the ranges and marks of roctx, whose text is the arguments of the call.
_MARKER: Final = "UserMarker"
# Domains of API calls; others are of libraries that annotate their work. rpd_tracer has its own.
_APIS: Final = ("hip", "cuda", "hsa")
_OWN: Final = "rpd_tracer"
# Names of API calls in files without domains; other names there are of rpd_tracer's own work.
_FUNCTION: Final = regex(r"(?:__)?(?:hip|cuda|cu)[A-Z]|hsa_")
_CALL, _BY_ARGUMENTS, _BY_NAME, _SKIPPED = range(4)


class RpdCalls:
    """The rows of rocpd_api, in the order of the file.

    Attributes
    ----------
    id : int64 [rows]
    start, end : int64 [rows], ns
    thread : int32 [rows], -1 if unknown
    name : int32 [rows], index into the strings, -1 if unknown
    tids : int64 [threads]
    process_of_thread : int32 [threads], index into pids
    pids : int64 [processes]
    """

    def __init__(self, database: Database, keys: _pools.Keys) -> None:
        """keys : gets the ids of names and domains"""
        columns = database.scan(
            schema.CALLS,
            [
                Field("id", I64, needed=True),
                Field("pid", I64),
                Field("tid", I64),
                Field("start", I64, needed=True),
                Field("end", I64, needed=True),
                Field("apiName_id", KEY, pool=keys, needed=True),
                Field("domain_id", KEY, pool=keys),
            ],
        )
        self.id: Int64 = columns["id"]
        self.start: Int64 = columns["start"]
        self.end: Int64 = np.maximum(columns["start"], columns["end"])
        self.name: Int32 = columns["apiName_id"]
        self.domain: Int32 = columns["domain_id"]
        place, first = alike([columns["pid"], columns["tid"]])
        self.tids: Int64 = columns["tid"][first]
        self.thread: Int32 = place
        self.pids, process = np.unique(columns["pid"][first], return_inverse=True)
        self.process_of_thread: Int32 = process.astype(np.int32)
        self._kind = np.empty(0, np.int32)

    def classify(self, strings: list[str | None]) -> None:
        """Tell API calls from ranges, by name and domain."""
        place, first = alike([self.name, self.domain])
        known = [*strings, None]
        pairs = zip(self.name[first].tolist(), self.domain[first].tolist(), strict=True)
        kinds = [_kind_of(known[name] or "", known[domain] or "") for name, domain in pairs]
        self._kind = take(np.array(kinds, np.int32), place)

    @property
    def is_call(self) -> Bools:
        """[rows] Whether it is an API call."""
        result: Bools = self._kind == _CALL
        return result

    def ranges(self, kind: int) -> Int64:
        """The rows of ranges of a kind; marks have no length and are none."""
        return np.flatnonzero((self._kind == kind) & (self.end > self.start))


def _kind_of(name: str, domain: str) -> int:
    if name == _MARKER:
        return _BY_ARGUMENTS
    if domain:
        return _CALL if domain in _APIS else _SKIPPED if domain == _OWN else _BY_NAME
    return _CALL if _FUNCTION.match(name) else _SKIPPED


def read_ranges(
    database: Database,
    calls: RpdCalls,
    strings: list[str | None],
    keys: _pools.Keys,
    labels: _pools.Names,
) -> tuple[Ranges, Values]:
    """The ranges in order, and their domains.

    labels : gets their names
    """
    of_roctx, of_others = calls.ranges(_BY_ARGUMENTS), calls.ranges(_BY_NAME)
    parts = [
        _named_by_arguments(database, calls, strings, keys, labels),
        _named(calls.name[of_others], strings, labels),
    ]
    rows = np.concatenate([of_roctx, of_others])
    label, seq, op_id = (
        np.concatenate([getattr(part, key) for part in parts]) for key in ("label", "seq", "op_id")
    )
    domain = np.full(len(rows), -1, np.int32)
    domain[len(of_roctx) :] = calls.domain[of_others]
    kept = np.flatnonzero(label >= 0)
    rows = rows[kept]
    order = _nest.order(calls.start[rows], calls.end[rows])
    if order is not None:
        rows, kept = rows[order], kept[order]
    ranges = Ranges(
        start=calls.start[rows],
        end=calls.end[rows],
        thread=calls.thread[rows],
        label=label[kept],
        seq=seq[kept],
        op_id=op_id[kept],
    )
    return ranges, Values(domain[kept], strings)


def _named(name: Int32, strings: list[str | None], labels: _pools.Names) -> RangeNames:
    """The names of ranges by those of their calls."""
    used, place = np.unique(name, return_inverse=True)
    texts = [strings[i] if i >= 0 else None for i in used.tolist()]
    label, seq, op_id = _column.split_range_names(labels, texts)
    return RangeNames(label[place], seq[place], op_id[place])


def _named_by_arguments(
    database: Database,
    calls: RpdCalls,
    strings: list[str | None],
    keys: _pools.Keys,
    labels: _pools.Names,
) -> RangeNames:
    """The names of the ranges of roctx: the texts of their arguments."""
    rows = calls.ranges(_BY_ARGUMENTS)
    if not len(rows):
        return _named(np.empty(0, np.int32), strings, labels)
    marker = keys.values()[calls.name[rows[0]]]
    arguments = _pools.Keys()
    columns = database.scan(
        schema.CALLS,
        [
            Field("apiName_id", I64, needed=True),  # the filter column
            Field("args_id", KEY, pool=arguments, needed=True),
        ],
        keep=_column.Among([marker]),
        capacity=len(rows),
    )
    is_marker = calls.name == calls.name[rows[0]]
    argument = columns["args_id"][(calls.end > calls.start)[is_marker]]
    table = schema.RARE_STRINGS if schema.RARE_STRINGS in database.tables else schema.STRINGS
    texts = database.scan(
        table,
        [
            Field("id", KEY, pool=arguments, needed=True),
            Field("string", RANGE, pool=labels, needed=True),
        ],
        keep=_column.KnownKeys(arguments),
        capacity=len(arguments),
    )
    row = np.full(len(arguments) + 1, -1, np.int64)
    row[texts["id"]] = np.arange(len(texts["id"]))
    result = row[argument]
    return RangeNames(
        *(
            np.append(texts[f"string{suffix}"], texts[f"string{suffix}"].dtype.type(-1))[result]
            for suffix in ("", "_seq", "_op_id")
        )
    )
