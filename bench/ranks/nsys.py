"""Writes an export of Nsight Systems per rank of a simulated run.

The ranges are those of torch.autograd.profiler.emit_nvtx(record_shapes=True), `layer:` ranges for
modules, and NCCL's own with their payloads: communicator and message size, as NCCL 2.28 and Nsight
Systems 2026 write them. NCCL records neither the ranks of a communicator nor a sequence number.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final

from bench.call_template import RUNTIME_CLASS
from bench.export import INSERT_CALL, INSERT_KERNEL, Export, insert_sql
from bench.gpu_template import KERNEL_COLUMNS
from bench.identity import VIRTUAL_MACHINE
from bench.ranks.communications import FIRST_STEP, communicator, present, recorded
from bench.ranks.kineto import RankFile
from bench.ranks.simulate import Run
from bench.strings import StringTable

PUSH_POP: Final = 59
DOMAIN: Final = 1  # of NCCL
BEFORE: Final = 1_000_000_000  # ns before the run, when communicators are made
RANGE: Final = ("start", "end", "text", "eventType", "globalTid", "domainId", "binaryData")
INSERT_RANGE: Final = insert_sql("NVTX_EVENTS", RANGE)
VERSIONS: Final = {
    "cudaLaunchKernel": "_v7000", "cudaLaunchKernelExC": "_v11060",
    "cudaStreamWaitEvent": "_v3020", "cudaStreamSynchronize": "_v3020",
}  # fmt: skip

# Schemas of payloads: type, name and offset of each field.
ENTRIES: Final = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
INT, UINT64, SIZE = 5, 18, 22
COMMUNICATOR: Final = (UINT64, "NCCL communicator ID", None)
BYTES: Final = (SIZE, "Message size [bytes]", 8)
INIT, ALL_REDUCE, PLAIN, PEER, ROOT = 16777218, 16777223, 16777220, 16777226, 16777222
SCHEMAS: Final = {
    INIT: (COMMUNICATOR, (INT, "No. of ranks", 8), (INT, "Rank", 12), (INT, "CUDA device", 16)),
    ALL_REDUCE: (COMMUNICATOR, BYTES, (16777232, "Reduction operation", 16)),
    PLAIN: (COMMUNICATOR, BYTES),
    PEER: (COMMUNICATOR, BYTES, (INT, "Peer rank", 16)),
    ROOT: (COMMUNICATOR, BYTES, (INT, "Root", 16)),
}

# NCCL's function and its schema, by torch's name of the collective. Sizes are those of the elements
# that NCCL counts: of an all-to-all and a reduce-scatter the part of one rank.
CALLS: Final = {
    "allreduce": ("ncclAllReduce", ALL_REDUCE),
    "_allgather_base": ("ncclAllGather", PLAIN),
    "_reduce_scatter_base": ("ncclReduceScatter", ALL_REDUCE),
    "all_to_all": ("ncclAlltoAll", PLAIN),
    "broadcast": ("ncclBroadcast", ROOT),
    "send": ("ncclSend", PEER),
    "recv": ("ncclRecv", PEER),
}
WIDTH: Final = {"BFloat16": 2, "Float": 4}

Event = dict[str, Any]


def write(run: Run, directory: Path, *, first_step: int = FIRST_STEP) -> list[Path]:
    """Write `rank0.sqlite`, ...; returns their paths.

    first_step : number of the first step
    """
    paths = []
    is_recorded = recorded(run)
    for rank in present(run):
        file = RankFile(run, rank, is_recorded[:, rank], "full", first_step)
        path = directory / f"rank{rank}.sqlite"
        path.unlink(missing_ok=True)
        with Export(path) as export:
            _Rows(file).write(export)
        paths.append(path)
    return paths


class _Rows:
    """The rows of one rank, from the events of its trace of torch.profiler."""

    def __init__(self, file: RankFile) -> None:
        self.file = file
        self.strings = StringTable()
        self.process = VIRTUAL_MACHINE | file.pid << 24
        self.ranges: list[tuple[Any, ...]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.kernels: list[tuple[Any, ...]] = []

    def write(self, export: Export) -> None:
        """Write all tables."""
        self._communicators()
        for event in self.file.events:
            self._event(event)
        for sql, rows in (
            (INSERT_RANGE, self.ranges), (INSERT_CALL, self.calls), (INSERT_KERNEL, self.kernels),
        ):  # fmt: skip
            export.connection.executemany(sql, sorted(rows, key=lambda row: row[:2]))
        export.write_devices(self.file.device + 1)
        export.insert(
            "PROCESSES", ("globalPid", "pid", "name"), [(self.process, self.file.pid, "python")]
        )
        self._schemas(export)
        export.write_strings(self.strings)

    def _schemas(self, export: Export) -> None:
        columns = ("domainId", "schemaId", "idx", "type", "name", "offset", "arrayOrUnionDetail")
        export.connection.execute(f"CREATE TABLE {ENTRIES} ({', '.join(columns)})")
        rows = [
            (DOMAIN, schema, i, kind, name, offset, None)
            for schema, fields in SCHEMAS.items()
            for i, (kind, name, offset) in enumerate(fields)
        ]
        export.insert(ENTRIES, columns, rows)

    def _communicators(self) -> None:
        """NCCL's ranges that make the communicators of the rank's groups."""
        file = self.file
        start = round(file.events[0]["ts"] * 1000) - BEFORE
        for key, groups in file.run.program.groups.items():
            for name, ranks in zip(file.names[key], groups.ranks.tolist(), strict=True):
                if file.rank in ranks:
                    numbers = (len(ranks), ranks.index(file.rank), file.device)
                    payload = _blob(INIT, "Qiii", communicator(name), *numbers)
                    self._range(
                        start, start + 1_000_000, "ncclCommInitRankConfig", file.pid, payload
                    )
                    start += 2_000_000

    def _event(self, event: Event) -> None:
        category = event.get("cat")
        if category in (None, "gpu_user_annotation"):
            return
        start = round(event["ts"] * 1000)
        end = start + round(event["dur"] * 1000)
        args = event["args"]
        thread = self.process | event["tid"]
        if category == "kernel":
            self._kernel(event, start, end)
        elif category == "cuda_runtime":
            name = self.strings.id_of(event["name"] + VERSIONS[event["name"]])
            self.calls.append((start, end, args["correlation"], RUNTIME_CLASS, thread, name))
        else:
            self._range(start, end, _text(event), event["tid"])
            if event["name"] == "record_param_comms":
                name, payload = _nccl(args)
                self._range(start + 2_000, end - 2_000, name, event["tid"], payload)

    def _range(
        self, start: int, end: int, text: str, tid: int, payload: bytes | None = None
    ) -> None:
        domain = 0 if payload is None else DOMAIN
        self.ranges.append((start, end, text, PUSH_POP, self.process | tid, domain, payload))

    def _kernel(self, event: Event, start: int, end: int) -> None:
        args, name = event["args"], event["name"]
        short = name.removeprefix("void ").split("<")[0].split("(")[0].split("::")[-1]
        values = {
            "start": start, "end": end, "correlationId": args["correlation"],
            "deviceId": args["device"], "contextId": 1, "globalPid": self.process,
            "streamId": args["stream"], "gridId": args["correlation"],
            "demangledName": self.strings.id_of(name), "shortName": self.strings.id_of(short),
            "mangledName": self.strings.id_of(name),
            "registersPerThread": args["registers per thread"], "staticSharedMemory": 0,
            "dynamicSharedMemory": args["shared memory"],
            **{f"grid{axis}": n for axis, n in zip("XYZ", args["grid"], strict=True)},
            **{f"block{axis}": n for axis, n in zip("XYZ", args["block"], strict=True)},
        }  # fmt: skip
        self.kernels.append(tuple(values[column] for column in KERNEL_COLUMNS))


def _text(event: Event) -> str:
    """The name of the range that emit_nvtx or `layer:` pushes for an event."""
    name, args = event["name"], event["args"]
    if event["cat"] == "python_function":
        return name.replace("nn.Module: ", "layer:")
    if event["cat"] == "user_annotation":
        return name.replace("ProfilerStep#", "step ")
    if "Sequence number" in args:
        name += f", seq = {args['Sequence number']}"
    name += f", op_id = {args['External id']}"
    if "Input Dims" not in args:
        return name
    sizes: list[Any] = []
    for size in args["Input Dims"]:  # lists of tensors are flattened
        sizes += size if size and isinstance(size[0], list) else [size]
    return f"{name}, sizes = {sizes}"


def _nccl(args: dict[str, Any]) -> tuple[str, bytes]:
    """Name and payload of NCCL's range of a collective, from torch's record of it."""
    name, schema = CALLS[args["Collective name"]]
    elements = min(args["In msg nelems"], args["Out msg nelems"])
    if schema == PLAIN and name == "ncclAlltoAll":
        elements //= args["Group size"]
    values = [communicator(args["Process Group Name"]), elements * WIDTH[args["dtype"]]]
    form = "QQ"
    if schema != PLAIN:
        form += "i"
        values.append(args["Rank"] if schema == PEER else 0)
    return name, _blob(schema, form, *values)


def _blob(schema: int, form: str, *values: int) -> bytes:
    """A payload with its header: domain, schema, size and end."""
    payload = struct.pack(f"<{form}", *values)
    payload += bytes(-len(payload) % 8)
    return struct.pack("<IIIIQQ", DOMAIN, 0, schema, 0, len(payload), 32 + len(payload)) + payload
