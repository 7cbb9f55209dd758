"""The schema of rocpd databases, versions 3.0.0 to 4.1.0, as data.

A database contains one or more runs, one per process that was recorded. The tables of a run have
its id as suffix: rocpd_region_UUID. Ids refer to tables of the same run. Columns are read by name:
in 4.1.0, rocpd_track has the place (process, thread, agent, queue, stream) of a row that other
versions store in the row itself. The views of a database are not read. Source: rocpd_tables.sql of
ROCm/rocm-systems, projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd, and the writers of
both tools for the meaning of categories and ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from fastprof._core import _column, _pools
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.readers.cupti import config_field
from fastprof.readers.sqlite.database import Database, Field
from fastprof.readers.sqlite.pages import escaped
from fastprof.readers.trace_columns import text

DISPATCHES = "rocpd_kernel_dispatch"
COPIES = "rocpd_memory_copy"
ALLOCATIONS = "rocpd_memory_allocate"
ARGUMENTS = "rocpd_arg"
REGIONS = "rocpd_region"
EVENTS = "rocpd_event"
STRINGS = "rocpd_string"
METADATA = "rocpd_metadata"
# Any of these with a suffix makes a run; the names of other tables begin with none of them.
# rocmProfileData, another format, also has tables rocpd_string and rocpd_metadata.
_OF_RUNS: Final = (DISPATCHES, REGIONS, "rocpd_info_process", "rocpd_info_agent")

RECORD_AGAIN = "record it again: rocprofv3 --sys-trace --output-format rocpd -- python train.py"

I64, KEY, TEXT, MESSAGE = _column.I64, _column.KEY, _column.TEXT, _column.MESSAGE

# The kind of a region, by its category. Names are those of rocprofiler-sdk's buffer tracing, and of
# rocprof-sys. Samples of call stacks and events of the driver are neither calls nor ranges.
CALL, MARKER, COLLECTIVE, OTHER, SKIPPED = range(5)
_KINDS: Final = (
    (MARKER, regex(r"MARKER_CORE(?:_RANGE)?_API|rocm_marker_api")),
    (COLLECTIVE, regex(r"(?:RCCL_API|rocm_rccl_api)")),
    (
        SKIPPED,
        regex(
            r"(?i:(?:rocm_)?(?:kernel_dispatch|memory_copy|memory_allocat|scratch_memory"
            r"|page_migration|counter_collection)|kfd_|\w*sampling)"
        ),
    ),
    (CALL, regex(r"[A-Z]+(?:_[A-Z]+)*_API(?:_EXT)?\Z|rocm_\w+_api\Z")),
)
_HSA: Final = regex(r"HSA_\w+_API|rocm_hsa_api")
# Regions without a category.
_FUNCTIONS: Final = regex(r"(?:hip|__hip|hsa_)[A-Za-z_]+\Z")


def kind_of_category(category: str | None, name: str | None) -> int:
    """The kind of a region.

    name : of the region, which decides if it has no category
    """
    if category is None:
        return CALL if name is not None and _FUNCTIONS.match(name) else OTHER
    return next((kind for kind, pattern in _KINDS if pattern.match(category)), OTHER)


def is_hsa(category: str | None) -> bool:
    """Whether regions of a category are calls of HSA, which HIP is built on."""
    return category is not None and bool(_HSA.match(category))


@dataclass(frozen=True)
class Run:
    """The tables of a run.

    Parameters
    ----------
    number : place of the run in the file, from 0
    suffix : of its tables
    """

    number: int
    suffix: str

    def table(self, base: str) -> str:
        """The name of a table in the file, which may lack it."""
        return base + self.suffix


def runs_of(tables: Iterable[str]) -> list[Run]:
    """The runs in a file with these tables, in the order of their first tables."""
    suffixes = dict.fromkeys(
        table.removeprefix(base) for table in tables for base in _OF_RUNS if table.startswith(base)
    )
    return [Run(number, suffix) for number, suffix in enumerate(suffixes)]


def recognises(tables: Mapping[str, Collection[str]]) -> bool:
    """Whether a file with these tables is a rocpd database."""
    return any(table.startswith(base) for table in tables for base in _OF_RUNS)


def tables_of(tables: Iterable[str], base: str) -> set[str]:
    """The tables of all runs with the same contents."""
    names = set(tables)
    return {run.table(base) for run in runs_of(names)} & names


def refuse_compressed(database: Database, run: Run) -> None:
    """Reject a run whose contents are compressed.

    Raises
    ------
    BadInputError
    """
    for tag, value in rows(database, run, METADATA, "", "tag value"):
        if tag == "compression":
            raise BadInputError(
                f"{database.name}: compressed with {value}, which is not supported; "
                f"{RECORD_AGAIN}, with a rocprofv3 that does not compress"
            )


def rows(
    database: Database, run: Run, base: str, numbers: str, texts: str = ""
) -> list[tuple[Any, ...]]:
    """Rows of a small table; no rows if the run lacks it.

    numbers, texts : columns, in this order in each row: int or None, then str or None. None also
        stands for values of another type, and for columns that the table lacks.
    """
    table = run.table(base)
    present = database.tables.get(table)
    if present is None:
        return []
    chosen = [
        f"CASE typeof(\"{name}\") WHEN '{kind}' THEN {value} END" if name in present else "NULL"
        for kind, names in (("integer", numbers), ("text", texts))
        for name in names.split()
        for value in [f'"{name}"' if kind == "integer" else f'CAST("{name}" AS BLOB)']
    ]
    selected = database.rows(f'SELECT {", ".join(chosen)} FROM "{escaped(table)}" NOT INDEXED')
    n = len(numbers.split())
    return [(*row[:n], *map(text, row[n:])) for row in selected]


def place_fields() -> list[Field]:
    """Where a row belongs."""
    names = ("pid", "tid", "agent_id", "queue_id", "stream_id", "track_id")
    return [config_field(name, I64) for name in names]


def work_fields() -> list[Field]:
    """Fields of all GPU work."""
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("event_id", I64),
        *place_fields(),
        config_field("graph_exec_id", I64),
        config_field("graph_node_id", I64),
    ]


SIZES: Final = ("grid_size", "workgroup_size")
AXES: Final = "xyz"


def dispatch_fields() -> list[Field]:
    sizes = [f"{size}_{axis}" for size in SIZES for axis in AXES]
    names = ("kernel_id", "group_segment_size", *sizes)
    return [*work_fields(), *(config_field(name, I64) for name in names)]


def copy_fields() -> list[Field]:
    names = ("name_id", "dst_agent_id", "src_agent_id")
    return [*work_fields(), Field("size", I64), *(config_field(name, I64) for name in names)]


def region_fields() -> list[Field]:
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("event_id", I64),
        *place_fields(),
        config_field("name_id", I64),
    ]


def event_fields(categories: _pools.Keys, messages: _pools.Names) -> list[Field]:
    """The message of an event is the name of a range."""
    return [
        Field("id", I64, needed=True),
        Field("category_id", KEY, pool=categories),
        Field("stack_id", I64),
        Field("extdata", MESSAGE, pool=messages),
    ]


def parent_fields() -> list[Field]:
    """Of calls that other calls make."""
    return [
        Field("category_id", I64, needed=True),  # the filter column
        Field("stack_id", I64),
        Field("parent_stack_id", I64),
    ]


def string_fields(strings: _pools.Keys, texts: _pools.Names, column: str = "string") -> list[Field]:
    return [
        Field("id", KEY, pool=strings, needed=True),
        Field(column, TEXT, pool=texts, needed=True),
    ]


def argument_fields(events: _pools.Keys, names: _pools.Names, values: _pools.Names) -> list[Field]:
    return [
        Field("event_id", KEY, pool=events, needed=True),  # the filter column
        Field("name", TEXT, pool=names, needed=True),
        Field("value", TEXT, pool=values),
    ]
