"""The tables of Nsight Systems exports from 2020 to 2026, as data.

Compared column by column with real exports of 2021, 2022, 2024, 2025 and 2026. The schema of 2020
is that of 2021 without its additions.
"""

from dataclasses import dataclass
from functools import cache

SCHEMAS = ("2020", "2021", "2022", "2024", "2025", "2026")

# EXPORT_SCHEMA_VERSION and the product's version, for exports that contain them.
VERSIONS = {
    "2022": ("3.0.0", "2022.4.2.1"),
    "2024": ("3.11.1", "2024.2.1.106"),
    "2025": ("3.23.3", "2025.5.1.121"),
    "2026": ("3.25.0", "2026.2.1.210"),
}

EVENT_TYPES = {
    "NvtxCategory": 33,
    "NvtxMark": 34,
    "NvtxThread": 39,
    "NvtxPushPopRange": 59,
    "NvtxStartEndRange": 60,
    "NvtxtMark": 65,
    "NvtxtPushPopRange": 70,
    "NvtxtStartEndRange": 71,
    "NvtxDomainCreate": 75,
    "NvtxDomainDestroy": 76,
}

# Columns are INTEGER NOT NULL by default. `?`: may be NULL; `*`: primary key; `:TEXT`: other type;
# `@2024`: since that schema. `@2022` alone applies to the table.
_TABLES = {
    "StringIds": "id* value:TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": """
        start end deviceId contextId greenContextId?@2024 streamId correlationId? globalPid?
        demangledName shortName mangledName?@2022 launchType? cacheConfig? registersPerThread
        gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory
        localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted? graphNodeId?
        sharedMemoryLimitConfig?@2021 qmdBulkReleaseDone?@2025 qmdPreexitDone?@2025
        qmdLastCtaDone?@2025 graphId?@2025 clusterX?@2025 clusterY?@2025 clusterZ?@2025
        clusterSchedulingPolicy?@2025 maxPotentialClusterSize?@2025 maxActiveClusters?@2025
        sharedMemoryRequestedPercentage?@2026 tensorSizeMinusOneElements:TEXT@2026""",
    "CUPTI_ACTIVITY_KIND_RUNTIME": """
        start end eventClass globalTid? correlationId? nameId returnValue callchainId?@2021""",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": """@2022
        start end deviceId contextId greenContextId?@2024 streamId correlationId? globalPid?
        graphId graphExecId""",
    "CUPTI_ACTIVITY_KIND_MEMCPY": """
        start end deviceId contextId greenContextId?@2024 streamId correlationId? globalPid? bytes
        copyKind deprecatedSrcId? srcKind? dstKind? srcDeviceId? srcContextId? dstDeviceId?
        dstContextId? migrationCause? graphNodeId?@2021 virtualAddress?@2022 copyCount?@2025""",
    "CUPTI_ACTIVITY_KIND_MEMSET": """
        start end deviceId contextId greenContextId?@2024 streamId correlationId? globalPid? value
        bytes graphNodeId?@2021 memKind?""",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": """
        start end deviceId contextId greenContextId?@2024 streamId correlationId? globalPid?
        deprecatedSyncType?@2025 syncType eventId eventSyncId?@2025""",
    "OSRT_API": """@2022
        start end eventClass globalTid? nameId returnValue nestingLevel? callchainId
        argumentsId@2025""",
    "COMPOSITE_EVENTS": "id* start cpu? threadState? globalTid? cpuCycles",
    "SAMPLING_CALLCHAINS": """
        id* symbol module kernelMode? thumbCode? unresolved? specialEntry? originalIP?
        unwindMethod? stackDepth*""",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": """
        start globalPid address originalFaultPc? CpuInstruction module unresolvedFaultPc?""",
    "SCHED_EVENTS": "start cpu isSchedIn globalTid? threadState?@2022 threadBlock?@2022",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": """@2021
        start globalPid deviceId contextId address pc bytes memKind memoryOperationType name:TEXT?
        correlationId? localMemoryPoolAddress?@2022 localMemoryPoolReleaseThreshold?@2022
        localMemoryPoolSize?@2022 localMemoryPoolUtilizedSize?@2022
        importedMemoryPoolAddress?@2022 importedMemoryPoolProcessId?@2022""",
    "CUDA_GRAPH_NODE_EVENTS": """@2022
        start end eventClass globalTid? nameId graphNodeId originalGraphNodeId?""",
    "NVTX_EVENTS": """
        start end? eventType rangeId? category? color? text:TEXT? globalTid? endGlobalTid? textId?
        domainId? uint64Value? int64Value? doubleValue:REAL? uint32Value? int32Value?
        floatValue:REAL? jsonTextId?@2021 jsonText:TEXT?@2022 binaryData:TEXT?@2026""",
    "TARGET_INFO_GPU": """
        vmId id name:TEXT? busLocation:TEXT? isDiscrete? l2CacheSize?@2021 totalMemory?@2021
        memoryBandwidth?@2021 clockRate?@2021 smCount?@2021 pwGpuId?@2021 uuid:TEXT?@2021
        luid?@2021 chipName:TEXT?@2021 cuDevice?@2021 ctxswDevPath:TEXT?@2021
        ctrlDevPath:TEXT?@2021 revision?@2021 nodeMask?@2021 constantMemory?@2021 maxIPC?@2021
        maxRegistersPerBlock?@2021 maxShmemPerBlock?@2021 maxShmemPerBlockOptin?@2021
        maxShmemPerSm?@2021 maxRegistersPerSm?@2021 threadsPerWarp?@2021 asyncEngines?@2021
        maxWarpsPerSm?@2021 maxBlocksPerSm?@2021 maxThreadsPerBlock?@2021 maxBlockDimX?@2021
        maxBlockDimY?@2021 maxBlockDimZ?@2021 maxGridDimX?@2021 maxGridDimY?@2021
        maxGridDimZ?@2021 computeMajor?@2021 computeMinor?@2021 smMajor?@2021 smMinor?@2021""",
    "TARGET_INFO_CUDA_DEVICE": "@2025 gpuId? cudaId pid",
    "PROCESSES": "@2022 globalPid? pid? name:TEXT?",
    "ThreadNames": "nameId priority? globalTid?",
    "ENUM_NSYS_EVENT_TYPE": "@2022 id* name:TEXT? label:TEXT?",
    "EXPORT_META_DATA": "@2022 name:TEXT value:TEXT?",
    "META_DATA_EXPORT": "@2024 name:TEXT value:TEXT?",
    "META_DATA_CAPTURE": "@2024 name:TEXT value:TEXT?",
}


@dataclass(frozen=True)
class Column:
    """One column of a table: `kind` is its SQL type, `default` the value for rows without it."""

    name: str
    kind: str
    nullable: bool
    primary_key: bool

    @property
    def default(self) -> int | str | None:
        if self.nullable:
            return None
        return {"TEXT": "[]" if self.name.startswith("tensorSize") else ""}.get(self.kind, 0)

    @property
    def definition(self) -> str:
        null = "" if self.nullable else " NOT NULL"
        return f"{self.name} {self.kind}{null}"


def tables(schema: str) -> dict[str, list[Column]]:
    """Name -> columns of every table that an export of this schema may have."""
    if schema not in SCHEMAS:
        raise ValueError(f"schema is {schema!r}, expected one of {', '.join(SCHEMAS)}")
    result = {}
    for table, text in _TABLES.items():
        words = text.split()
        since = words.pop(0)[1:] if words[0].startswith("@") else SCHEMAS[0]
        if schema >= since:
            parts = (word.partition("@") for word in words)
            result[table] = [_column(part[0]) for part in parts if schema >= part[2]]
    if schema >= "2024":
        del result["EXPORT_META_DATA"]
    return result


@cache
def column_names(table: str) -> frozenset[str]:
    """The columns of a table in all schemas."""
    return frozenset(column.name for schema in SCHEMAS for column in tables(schema).get(table, ()))


def create_table(schema: str, table: str, columns: list[Column]) -> str:
    """The CREATE statement: one line up to 2021, later one commented line per column."""
    keys = [column.name for column in columns if column.primary_key]
    one = " PRIMARY KEY" if len(keys) == 1 else ""
    parts = [column.definition + one * column.primary_key for column in columns]
    parts += [f"PRIMARY KEY ({', '.join(keys)})"] if len(keys) > 1 else []
    if schema <= "2021":
        return f"CREATE TABLE {table} ({', '.join(parts)})"
    lines = [
        f"    {part + (',' if part is not parts[-1] else ''):<70}-- {part.split()[0]}."
        for part in parts
    ]
    return "\n".join([f"CREATE TABLE {table} (", *lines, ")"])


def _column(word: str) -> Column:
    name, _, kind = word.rstrip("?*").partition(":")
    return Column(name, kind or "INTEGER", word.endswith("?"), word.endswith("*"))
