"""Writes the JSON of rocprofv3 for tests: records in, a file out, in the order of the real writer.

Format: rocprofiler-sdk, source/lib/output/generateJSON.cpp. Grids are in work items, times in ns.

trace = RocprofFile()
trace.hip(10, 20, corr=7)
trace.kernel(30, 40, corr=7, name="gemm")
path = trace.write(tmp_path / "1_results.json.gz")
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PID, TID = 100, 101
GPU, CPU = 502, 500  # handles of agents; those of further GPUs follow

KINDS = {
    "NONE": [],
    "HIP_RUNTIME_API": [
        *("hipLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize", "hipMalloc"),
        *("hipStreamBeginCapture", "hipStreamEndCapture"),
    ],
    "HSA_CORE_API": ["hsa_init", "hsa_signal_wait_scacquire"],
    "RCCL_API": ["ncclAllReduce", "ncclGroupStart"],
    "MARKER_CORE_API": ["roctxMarkA", "roctxRangePushA", "roctxRangePop", "roctxRangeStartA"],
    "MARKER_CORE_RANGE_API": ["roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA"],
    "MARKER_CONTROL_API": ["roctxProfilerPause", "roctxProfilerResume"],
    "MEMORY_COPY": [
        *("MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"),
        *("MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE"),
    ],
    "MEMORY_ALLOCATION": [
        *("MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE"),
        *("MEMORY_ALLOCATION_VMEM_ALLOCATE", "MEMORY_ALLOCATION_FREE"),
        "MEMORY_ALLOCATION_VMEM_FREE",
    ],
    "KERNEL_DISPATCH": ["NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"],
}
_LISTS = (
    *("kernel_dispatch", "hip_api", "hsa_api", "marker_api", "rccl_api", "memory_copy"),
    *("memory_allocation", "scratch_memory"),
)


class RocprofFile:
    """The records of one process; `with_process` adds those of another."""

    def __init__(self, pid: int = PID, gpus: int = 1, **gpu: Any) -> None:
        """gpu : facts of the GPUs, such as product_name"""
        self.pid = pid
        self.records: dict[str, list[dict[str, Any]]] = {name: [] for name in _LISTS}
        self.messages: list[dict[str, Any]] = []
        self.symbols: list[dict[str, Any]] = []
        self.agents = [self.agent(CPU, 1, 0, 0), *(
            self.agent(GPU + i, 2, i + 1, i) | gpu for i in range(gpus))]  # fmt: skip
        self.others: list[RocprofFile] = []
        self.counted: list[dict[str, Any]] = []
        self.counters: list[dict[str, Any]] = []

    @staticmethod
    def agent(handle: int, kind: int, node: int, number: int) -> dict[str, Any]:
        """An agent: kind 1 is a CPU, 2 a GPU."""
        is_gpu = kind == 2
        return {
            "id": {"handle": handle}, "type": kind, "node_id": node,
            "logical_node_type_id": number, "cu_count": 304 if is_gpu else 64,
            "max_engine_clk_fcompute": 2100 if is_gpu else 0,
            "name": "gfx942" if is_gpu else "AMD EPYC",
            "product_name": "AMD Instinct MI300X" if is_gpu else "AMD EPYC",
            "mem_banks": [{"heap_type": 1 if is_gpu else 0, "size_in_bytes": 206141652992}],
        }  # fmt: skip

    def _record(self, table: str, kind: str, operation: str, start: int, end: int, corr: int,
                tid: int, **others: Any) -> RocprofFile:  # fmt: skip
        number = list(KINDS).index(kind)
        self.records[table].append({
            "size": 80, "kind": number, "operation": KINDS[kind].index(operation),
            "thread_id": tid, "correlation_id": {"internal": corr, "external": 0},
            "start_timestamp": start, "end_timestamp": end, **others,
        })  # fmt: skip
        return self

    def hip(self, start: int, end: int, corr: int, name: str = "hipLaunchKernel",
            tid: int = TID, **others: Any) -> RocprofFile:  # fmt: skip
        args = [{"type": "void const*", "name": "function_address", "value": '0x1 "{['}]
        others = {"args": args, "retval": {"hipError_t_retval": 0}} | others
        return self._record("hip_api", "HIP_RUNTIME_API", name, start, end, corr, tid, **others)

    def hsa(self, start: int, end: int, corr: int, name: str = "hsa_init",
            tid: int = TID) -> RocprofFile:  # fmt: skip
        return self._record("hsa_api", "HSA_CORE_API", name, start, end, corr, tid)

    def rccl(self, start: int, end: int, corr: int, name: str = "ncclAllReduce",
             tid: int = TID) -> RocprofFile:  # fmt: skip
        return self._record("rccl_api", "RCCL_API", name, start, end, corr, tid)

    def marker(self, start: int, end: int, corr: int, text: str | None,
               name: str = "roctxRangePushA", kind: str = "MARKER_CORE_API",
               tid: int = TID) -> RocprofFile:  # fmt: skip
        if text is not None:
            self.messages.append({"key": corr, "value": text})
        return self._record("marker_api", kind, name, start, end, corr, tid)

    def kernel(self, start: int, end: int, corr: int, name: str = "gemm", *, agent: int = GPU,
               queue: int = 1, stream: int | None = 3, grid: tuple[int, int, int] = (512, 6, 1),
               block: tuple[int, int, int] = (256, 4, 1), shared: int = 64,
               tid: int = TID) -> RocprofFile:  # fmt: skip
        known = [symbol["formatted_kernel_name"] for symbol in self.symbols]
        if name not in known:
            self.symbols.append({
                "kernel_id": 10 + len(known), "kernel_name": f"_Z{len(name)}{name}.kd",
                "formatted_kernel_name": name, "arch_vgpr_count": 24, "accum_vgpr_count": 8,
            })  # fmt: skip
            known.append(name)
        info = {
            "agent_id": {"handle": agent}, "queue_id": {"handle": queue},
            "kernel_id": 10 + known.index(name),
            "dispatch_id": 1 + len(self.records["kernel_dispatch"]),
            "group_segment_size": shared, "private_segment_size": 0,
            "workgroup_size": dict(zip("xyz", block, strict=True)),
            "grid_size": dict(zip("xyz", grid, strict=True)),
        }  # fmt: skip
        others = {} if stream is None else {"stream_id": {"handle": stream}}
        return self._record("kernel_dispatch", "KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE",
                            start, end, corr, tid, dispatch_info=info, **others)  # fmt: skip

    def copy(self, start: int, end: int, corr: int, n_bytes: int, source: int = CPU,
             target: int = GPU, direction: str = "HOST_TO_DEVICE",
             tid: int = TID) -> RocprofFile:  # fmt: skip
        return self._record(
            "memory_copy", "MEMORY_COPY", f"MEMORY_COPY_{direction}", start, end, corr, tid,
            src_agent_id={"handle": source}, dst_agent_id={"handle": target}, bytes=n_bytes,
            stream_id={"handle": 3},
        )  # fmt: skip

    def memory(self, time: int, address: int, n_bytes: int, operation: str = "ALLOCATE",
               agent: int = GPU, corr: int = 0) -> RocprofFile:  # fmt: skip
        return self._record(
            "memory_allocation", "MEMORY_ALLOCATION", f"MEMORY_ALLOCATION_{operation}", time,
            time + 5, corr, TID, agent_id={"handle": agent}, address=f"0x{address:016x}",
            allocation_size=n_bytes,
        )  # fmt: skip

    def count(
        self, *values: list[tuple[str, float]], keep: bool = False, bare: bool = False
    ) -> RocprofFile:
        """Turn the kernels into records with counters, as with --pmc and without --kernel-trace.

        values : counters of each kernel; one with 2.5 if left out
        keep : keep the other records of the kernels too
        bare : handles are numbers, as in some versions
        """
        own = values or [[("SQ_WAVES", 2.5)]] * len(self.records["kernel_dispatch"])
        names = list(dict.fromkeys(name for pairs in own for name, _ in pairs))
        self.counters = [
            {"id": 1000 + i if bare else {"handle": 1000 + i}, "name": name}
            for i, name in enumerate(names)
        ]
        for record, pairs in zip(self.records["kernel_dispatch"], own, strict=True):
            keys = ("correlation_id", "start_timestamp", "end_timestamp", "dispatch_info")
            self.counted.append({
                "thread_id": record["thread_id"], "stream_id": record["stream_id"],
                "dispatch_data": {"size": 8, **{key: record[key] for key in keys}},
                "records": [
                    {"counter_id": self.counters[names.index(name)]["id"], "value": value}
                    for name, value in pairs
                ],
            })  # fmt: skip
        if not keep:
            self.records["kernel_dispatch"] = []
        return self

    def with_process(self, other: RocprofFile) -> RocprofFile:
        self.others.append(other)
        return self

    def content(self) -> dict[str, Any]:
        """What stands in the file for the process."""
        return {
            "metadata": {
                "pid": self.pid, "init_time": 0, "fini_time": 10**9,
                "config": {"output_path": "/x", "kernel_rename": False, "json_output": True},
                "command": ["python", "train.py"],
            },
            "agents": self.agents,
            "counters": self.counters,
            "strings": {
                "callback_records": [],
                "buffer_records": [
                    {"kind": kind, "operations": names} for kind, names in KINDS.items()
                ],
                "marker_api": self.messages,
                "correlation_id": {"external": []},
            },
            "code_objects": [],
            "kernel_symbols": [{"kernel_id": 0, "kernel_name": "", "formatted_kernel_name": ""},
                               *self.symbols],
            "host_functions": [{"thread_ids": {"x": 0}}],
            "summary": [],
            "callback_records": {"counter_collection": self.counted},
            "buffer_records": self.records,
        }  # fmt: skip

    def text(self) -> str:
        return json.dumps({"rocprofiler-sdk-tool": [
            each.content() for each in (self, *self.others)]})  # fmt: skip

    def write(self, path: Path) -> Path:
        text = self.text().encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        return path
