"""The schema of NVProf's SQLite files of 2017 to 2022, as data.

Columns are read by name: kernels have 25 to 42 of them, by the version of CUPTI. Source of names
and meanings: the structures CUpti_ActivityKernel to Kernel5, CUpti_ActivityMarker2 and
CUpti_ActivityAPI of the CUPTI reference, https://docs.nvidia.com/cupti/.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fastprof._core import _column, _pools
from fastprof.model.trace import NEVER
from fastprof.readers import cupti as cupti_schema
from fastprof.readers.sqlite.database import Field

KERNELS = ("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUPTI_ACTIVITY_KIND_KERNEL")
# If both have the correlation id of a kernel, the runtime call is its launch.
LAUNCHES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
MARKERS = "CUPTI_ACTIVITY_KIND_MARKER"
COPIES = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2")
SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
STRINGS = "StringTable"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
CONTEXTS = "CUPTI_ACTIVITY_KIND_CONTEXT"

I64, I32, KEY, RANGE, TEXT = _column.I64, _column.I32, _column.KEY, _column.RANGE, _column.TEXT

# CUpti_ActivityFlag of a marker.
START, END = 2, 4
# CUpti_ActivityObjectKind: the thread in objectId is a process id and a thread id.
OF_THREAD = 2

# A thread here is its process and its id, 32 bits each. NVProf writes ids as signed numbers.
PROCESS_SHIFT = 32
LOW_32_BITS = 0xFFFFFFFF
_THREAD = "(processId << 32) | (threadId & 4294967295)"

_CORRELATION = Field("correlationId", I64, needed=True)


class NvprofPools:
    """The interned values that columns of all tables refer to."""

    def __init__(self) -> None:
        self.labels = _pools.Names()
        self.strings = _pools.Keys()
        self.threads = _pools.Keys()
        self.processes = _pools.Keys()
        self.objects = _pools.Names()


def kernel_fields(pools: NvprofPools) -> list[Field]:
    return [
        *cupti_schema.work_fields(),
        _CORRELATION,
        cupti_schema.config_field("name", KEY, pools.strings),
        *cupti_schema.kernel_fields(),
    ]


def copy_fields() -> list[Field]:
    """Of memory copies and memsets."""
    return [*cupti_schema.work_fields(), _CORRELATION, *cupti_schema.copy_fields()]


def launch_fields(pools: NvprofPools) -> list[Field]:
    return [
        Field("thread", KEY, pool=pools.threads, sql=_THREAD),  # filtered by the first three
        _CORRELATION,
        Field("cbid", I32),  # a filter column too
        Field("start", I64, needed=True),
        Field("returnValue", I32, 0),
    ]


def call_fields(pools: NvprofPools) -> list[Field]:
    """Of all API calls, with their ends."""
    return [*launch_fields(pools), Field("end", I64, NEVER)]


def sync_fields() -> list[Field]:
    return [*cupti_schema.sync_fields(), Field("contextId", I64), Field("type", I64)]


def context_fields() -> list[Field]:
    return [Field("contextId", I64, needed=True), Field("deviceId", I64, needed=True)]


def marker_fields(pools: NvprofPools) -> list[Field]:
    text = f"(SELECT value FROM {STRINGS} WHERE _id_ = {MARKERS}.name)"
    return [
        Field("timestamp", I64, needed=True),
        Field("flags", I32, needed=True),
        Field("id", I64, needed=True),
        Field("objectKind", I32),
        Field("object", TEXT, pool=pools.objects, sql="hex(objectId)"),
        Field("text", RANGE, pool=pools.labels, sql=text),
    ]


def string_fields(strings: _pools.Keys, texts: _pools.Names) -> list[Field]:
    return [
        Field("_id_", KEY, pool=strings, needed=True),
        Field("value", TEXT, pool=texts, needed=True),
    ]


def recognises(tables: Mapping[str, Collection[str]]) -> bool:
    """Whether a file with these tables is an NVProf file."""
    return {"_id_", "value"} <= set(tables.get(STRINGS, []))
