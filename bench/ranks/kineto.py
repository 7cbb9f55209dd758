"""Writes a file of torch.profiler per rank of a simulated run, as torch 2.6 and later do.

Sources of names and keys: torch/csrc/profiler/util.cpp and ProcessGroupNCCL.cpp of PyTorch,
libkineto/src/output_json.cpp, and traces of real runs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from bench.ranks import faults as faulty
from bench.ranks.communications import FIRST_STEP, Bools, Numbers, present, recorded, windows
from bench.ranks.program import (
    BACKWARD,
    COMPUTE_STREAM,
    OPTIMIZER,
    ROWS,
    Collective,
    Communication,
    Compute,
    Load,
    Operation,
    Receive,
    Send,
    Synchronise,
    Wait,
)
from bench.ranks.simulate import LAUNCHED, NEVER, RETURNED, Run

# Which fields of a collective files have: all and its number in the group on host and GPU; the
# number on the host only; no number; nothing, as in 2023.
METADATA: Final = ("full", "host", "names", "none")

EPOCH: Final = 1_750_000_000_000_000_000  # ns, when the clocks of all files begin
BASE: Final = 5_000_000_000_000  # ns on that clock when the run begins
GPUS_PER_NODE: Final = 8
MOST_RANKS: Final = 30  # longer lists of ranks are cut in fields of events
LOADER: Final = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
TYPES: Final = {
    "bfloat16": ("BFloat16", "c10::BFloat16", "bf16"),
    "float32": ("Float", "float", "f32"),
}
ARGUMENTS: Final = "(ncclDevKernelArgsStorage<4096ul>)"

# By kind: operator, its name in the record, range of NCCL, kernel.
COLLECTIVES: Final = {
    "all_reduce": ("c10d::allreduce_", "allreduce", "nccl:all_reduce", "AllReduce_Sum_{}_RING_LL"),
    "all_gather": (
        "c10d::_allgather_base_", "_allgather_base", "nccl:_all_gather_base", "AllGather_RING_LL",
    ),
    "reduce_scatter": (
        "c10d::_reduce_scatter_base_", "_reduce_scatter_base", "nccl:_reduce_scatter_base",
        "ReduceScatter_Sum_{}_RING_LL",
    ),
    "all_to_all": ("c10d::alltoall_base_", "all_to_all", "nccl:all_to_all", "SendRecv"),
    "broadcast": ("c10d::broadcast_", "broadcast", "nccl:broadcast", "Broadcast_RING_LL"),
    "send": ("c10d::send", "send", "nccl:send {}->{}", "SendRecv"),
    "recv": ("c10d::recv_", "recv", "nccl:recv {}<-{}", "SendRecv"),
}  # fmt: skip

GPU: Final = {
    "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85045346304, "computeMajor": 9,
    "computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 132,
    "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip

Cell = tuple[Operation, int, int, list[int]]  # operation, its place, step, the four times
Enclosing = tuple[tuple[str, str, int], ...]  # category, name and autograd number of ranges


def write(
    run: Run, directory: Path, metadata: str = "full", *, first_step: int = FIRST_STEP,
    compress: bool = True,
) -> list[Path]:  # fmt: skip
    """Write `rank0.json.gz`, ...; returns their paths.

    Parameters
    ----------
    metadata : str
        One of METADATA.
    first_step : int
        Number of the first step.
    """
    if metadata not in METADATA:
        raise ValueError(f"expected one of {', '.join(METADATA)}, found {metadata!r}")
    paths = []
    is_recorded = recorded(run)
    for rank in present(run):
        file = RankFile(run, rank, is_recorded[:, rank], metadata, first_step)
        path = directory / (f"rank{rank}.json" + ".gz" * compress)
        data = file.text().encode()
        path.write_bytes(gzip.compress(data, 1, mtime=0) if compress else data)
        paths.append(path)
    return paths


class RankFile:
    """The events of one rank.

    Parameters
    ----------
    is_recorded : bool [rows]
        The operations in the file.
    """

    def __init__(
        self, run: Run, rank: int, is_recorded: Bools, metadata: str, first_step: int
    ) -> None:
        self.run, self.rank, self.metadata, self.first_step = run, rank, metadata, first_step
        self.pid = 20_000 + rank
        self.device = rank % GPUS_PER_NODE
        self.events: list[dict[str, Any]] = []
        self.numbers = Numbers(run.program, first_step)
        self.names = run.program.group_names()
        clock = [f for f in run.faults if isinstance(f, faulty.Clock) and f.rank == rank]
        self.offset = sum(f.offset for f in clock)
        self.ppm = sum(f.ppm for f in clock)
        self.external = self.correlation = self.python_id = 0
        self.open: dict[int, list[tuple[tuple[str, str, int], dict[str, Any]]]] = {}
        self.closes: dict[int, int] = {}  # when the last operation of a thread ended
        keys = list(run.program.groups)
        self.streams = {key: 20 + 4 * i for i, key in enumerate(keys)}
        self._name_threads()
        self._steps()
        for cell in self._cells(is_recorded):
            self._operation(*cell)
        for thread in list(self.open):
            self._close(thread, 0)

    def text(self) -> str:
        """The file."""
        root = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": i, **GPU} for i in range(GPUS_PER_NODE)],
            "distributedInfo": self._distributed(),
            "record_shapes": 1,
            "with_modules": 1,
            "cuda_runtime_version": 12080,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": EPOCH,
            "traceEvents": self.events,
            "traceName": f"rank{self.rank}.json",
        }
        return json.dumps(root)

    def _cells(self, is_recorded: Bools) -> Iterator[Cell]:
        run, rank = self.run, self.rank
        rows = is_recorded.nonzero()[0]
        columns = (run.begin, run.end, run.gpu_begin, run.gpu_end)
        times = zip(*(column[rows, rank].tolist() for column in columns), strict=True)
        places = zip(run.op[rows].tolist(), run.step[rows].tolist(), strict=True)
        for (place, step), when in zip(places, times, strict=True):
            yield run.program.step[place], place, step, list(when)

    def _distributed(self) -> dict[str, Any]:
        program, world = self.run.program, self.run.program.n_ranks
        info: dict[str, Any] = {"backend": "nccl", "rank": self.rank, "world_size": world}
        if self.metadata == "none":
            return info
        groups = [("0", "default_pg", list(range(world)))]
        for key, each in program.groups.items():
            for name, ranks in zip(self.names[key], each.ranks.tolist(), strict=True):
                if self.rank in ranks and name != "0":
                    groups.append((name, each.description, ranks))
        info["pg_count"] = len(groups)
        info["pg_config"] = [
            {"pg_name": name, "pg_desc": about, "backend_config": "cuda:nccl",
             "pg_size": len(ranks), "ranks": ranks}
            for name, about, ranks in groups
        ]  # fmt: skip
        return {**info, "nccl_version": "2.26.2"}

    def _name_threads(self) -> None:
        python = {"process_name": "python", "process_labels": "CPU"}
        for what, name in python.items():
            self._metadata(what, name, self.pid, 0)
        self._metadata("process_labels", f"GPU {self.device}", self.device, 0)
        self._metadata("thread_name", f"thread {self.pid} (python)", self.pid, self.pid)
        self._metadata("thread_name", "thread (pt_autograd_0)", self.pid, self._thread(BACKWARD))

    def _metadata(self, what: str, name: str, pid: int, tid: int) -> None:
        args = {"labels" if what == "process_labels" else "name": name}
        event = {"ph": "M", "name": what, "ts": self._ts(0), "pid": pid, "tid": tid}
        self.events.append({**event, "args": args})

    def _steps(self) -> None:
        begin, end = 0, int(self.run.step_end[-1, self.rank])
        for rank, first, last in windows(self.run):
            if rank == self.rank:
                begin, end = first, last
        for step in range(self.run.n_steps):
            first = int(self.run.step_begin[step, self.rank])
            last = int(self.run.step_end[step, self.rank])
            if begin <= first < end:
                name = f"ProfilerStep#{self.first_step + step}"
                self._range("user_annotation", name, first, min(last, end), self.pid)

    # Operations

    def _operation(self, op: Operation, place: int, step: int, when: list[int]) -> None:
        begin, end = when[:2]
        thread = self._thread(op.phase)
        enclosing = self._enclosing(op, step)
        if enclosing is not None:
            self._enter(thread, enclosing, begin)
        self.closes[thread] = end
        if isinstance(op, Load):
            self._range("user_annotation", LOADER, begin + 400, end - 400, thread)
        elif isinstance(op, Compute):
            self._compute(op, step, when, thread)
        elif isinstance(op, Communication):
            self._communication(op, place, step, when, thread)
        elif isinstance(op, Wait):
            self._call("cudaStreamWaitEvent", 147, begin + 400, end - 400, thread, 0)
        elif isinstance(op, Synchronise):
            external = self._range("cpu_op", "aten::item", begin + 100, end - 100, thread)
            self._call("cudaStreamSynchronize", 131, begin + 500, end - 500, thread, external)

    def _enclosing(self, op: Operation, step: int) -> Enclosing | None:
        """The ranges around an operation; None: whatever is open stays so."""
        if isinstance(op, Load | Synchronise) or (
            isinstance(op, Wait | Communication) and op.phase == BACKWARD
        ):
            return ()
        if op.phase == OPTIMIZER:
            return (("user_annotation", "Optimizer.step#AdamW.step", NEVER),)
        if not isinstance(op, Compute | Communication):
            return None
        if isinstance(op, Compute) and op.phase == BACKWARD and op.backward:
            number = self._autograd(op, step)
            evaluate = f"autograd::engine::evaluate_function: {op.backward}"
            return (("cpu_op", evaluate, number), ("cpu_op", op.backward, number))
        modules = op.layer.split("/") if op.layer else ()
        return tuple(("python_function", f"nn.Module: {name}", NEVER) for name in modules)

    def _autograd(self, op: Compute, step: int) -> int:
        return 1000 * (step + 1) + op.node if op.node >= 0 else NEVER

    def _compute(self, op: Compute, step: int, when: list[int], thread: int) -> None:
        begin, end, gpu_begin, gpu_end = when
        rows = faulty.rows_of(op, self.run.faults, self.rank, step)
        dims = [[rows if size == ROWS else size for size in shape] for shape in op.dims]
        args: dict[str, Any] = {"Input Dims": dims, "Input type": list(op.types)}
        if op.phase != BACKWARD and op.node >= 0:
            args |= {"Sequence number": self._autograd(op, step), "Fwd thread id": 0}
        external = self._range("cpu_op", op.op, begin + 400, end - 400, thread, args)
        correlation = self._launch("cudaLaunchKernel", 211, begin, end, thread, external)
        shape = {"grid": [max(1, rows * len(dims) // 64), 1, 1], "block": [384, 1, 1],
                 "registers per thread": 168, "shared memory": 0}  # fmt: skip
        self._kernel(op.kernel, gpu_begin, gpu_end, COMPUTE_STREAM, correlation, external, shape)

    def _communication(
        self, op: Communication, place: int, step: int, when: list[int], thread: int
    ) -> None:
        begin, end, gpu_begin, gpu_end = when
        kind = op.kind if isinstance(op, Collective) else _direction(op)
        operator, _, annotation, kernel = COLLECTIVES[kind]
        _, torch_type, short = TYPES[op.dtype]
        fields = self._fields(op, place, step)
        if not isinstance(op, Collective):
            annotation = annotation.format(*self._ends(op))
        given, got = _elements(op, self.run.program.groups[op.groups].size)
        dims, types = _arguments(kind, given, got, torch_type)
        self._range("cpu_op", operator, begin + 400, end - 400, thread,
                    {"Input Dims": dims, "Input type": types})  # fmt: skip
        external = self._range(
            "cpu_op", "record_param_comms", begin + 1_000, end - 1_000, thread,
            {"Input Dims": [[[given]]], "Input type": ["TensorList"], **fields},
        )  # fmt: skip
        self._range("user_annotation", annotation, begin + 2_000, end - 2_000, thread,
                    {"Input Dims": [[given]], "Input type": [torch_type]})  # fmt: skip
        correlation = self._launch("cudaLaunchKernelExC", 430, begin, end, thread, external)
        absent: tuple[str, ...] = ("Global rank", "Rank")
        if self.metadata == "host":
            absent += ("Seq", "Comms Id")
        on_gpu = {key: value for key, value in fields.items() if not key.startswith(absent)}
        stream = self._stream(op)
        self._span("gpu_user_annotation", annotation, gpu_begin, gpu_end, self.device, stream,
                   {"External id": self.external})  # fmt: skip
        shape = {"grid": [24, 1, 1], "block": [544, 1, 1], "registers per thread": 96,
                 "shared memory": 82240}  # fmt: skip
        self._kernel(
            f"ncclDevKernel_{kernel.format(short)}{ARGUMENTS}", gpu_begin, gpu_end,
            stream, correlation, external, {**shape, **on_gpu},
        )  # fmt: skip

    def _fields(self, op: Communication, place: int, step: int) -> dict[str, Any]:
        """What torch records of a communication."""
        if self.metadata == "none":
            return {}
        groups = self.run.program.groups[op.groups]
        row = int((groups.ranks == self.rank).any(axis=1).nonzero()[0][0])
        ranks = groups.ranks[row].tolist()
        given, got = _elements(op, groups.size)
        kind = op.kind if isinstance(op, Collective) else _direction(op)
        fields: dict[str, Any] = {
            "Collective name": COLLECTIVES[kind][1],
            "In msg nelems": given,
            "Out msg nelems": got,
            "Group size": groups.size,
            "dtype": TYPES[op.dtype][0],
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": self.names[op.groups][row],
            "Process Group Description": groups.description,
            "Process Group Ranks": _list(ranks),
            "Global rank start": ranks[0],
            "Global rank stride": ranks[1] - ranks[0] if len(ranks) > 1 else 1,
        }
        if isinstance(op, Send | Receive):
            fields["Dst Rank" if isinstance(op, Send) else "Src Rank"] = self._peer(op)
        if self.metadata != "names":
            fields["Rank"] = self._ends(op)[1]
            fields["Seq"] = int(self.numbers.of(place, step)[self.rank])
            key = f"{fields['Process Group Name']} {kind in ('send', 'recv')} {fields['Seq']}"
            fields["Comms Id"] = int.from_bytes(
                blake2b(key.encode(), digest_size=8).digest(), "big"
            )
        return fields

    def _peer(self, op: Send | Receive) -> int:
        assert op.ranks is not None
        others = op.targets if isinstance(op, Send) else op.sources
        return int(others[op.ranks.tolist().index(self.rank)])

    def _ends(self, op: Communication) -> tuple[int, int]:
        """This rank and the other end, as places in the group; of a collective twice this rank."""
        groups = self.run.program.groups[op.groups]
        ranks = groups.ranks[(groups.ranks == self.rank).any(axis=1)][0].tolist()
        other = self.rank if isinstance(op, Collective) else self._peer(op)
        return ranks.index(self.rank), ranks.index(other)

    def _stream(self, op: Communication) -> int:
        if isinstance(op, Collective) and op.stream:
            return COMPUTE_STREAM if op.stream == "compute" else self.streams[op.stream]
        return self.streams[op.groups] + isinstance(op, Receive)

    # Events

    def _thread(self, phase: str) -> int:
        return self.pid + 100_000 * (phase == BACKWARD)

    def _ts(self, ns: int) -> float:
        """Recorded microseconds of true ns."""
        return (BASE + self.offset + ns + round(ns * self.ppm * 1e-6)) / 1000

    def _enter(self, thread: int, enclosing: Enclosing, begin: int) -> None:
        """Close the ranges of a thread that are not around the next operation; open the others."""
        stack = self.open.setdefault(thread, [])
        same = 0
        while same < min(len(stack), len(enclosing)) and stack[same][0] == enclosing[same]:
            same += 1
        self._close(thread, same)
        for depth, key in enumerate(enclosing[same:], same):
            category, name, number = key
            args: dict[str, Any] = {}
            if category == "python_function":
                parent = stack[-1][1]["args"]["Python id"] if stack else 0
                self.python_id += 1
                args = {"Python parent id": parent, "Python id": self.python_id}
                args["Python module id"] = 0
            elif number != NEVER:
                args = {"Sequence number": number, "Fwd thread id": 1}
            self._range(category, name, begin + 40 * depth, NEVER, thread, args)
            stack.append((key, self.events[-1]))

    def _close(self, thread: int, depth: int) -> None:
        """Close the open ranges of a thread from a depth on."""
        stack = self.open[thread]
        while len(stack) > depth:
            _, event = stack.pop()
            end = self._ts(self.closes[thread] - 40 * len(stack))
            event["dur"] = round(end - event["ts"], 3)

    def _range(
        self, category: str, name: str, begin: int, end: int, thread: int,
        args: dict[str, Any] | None = None,
    ) -> int:  # fmt: skip
        """Add a range of the host; returns its external id."""
        first = {}
        if category != "python_function":
            self.external += 1
            first = {"External id": self.external, "Record function id": 0}
        self._span(category, name, begin, end, self.pid, thread, {**first, **(args or {})})
        return self.external

    def _launch(
        self, name: str, cbid: int, begin: int, end: int, thread: int, external: int
    ) -> int:
        first, last = (begin + int((end - begin) * share) for share in (LAUNCHED, RETURNED))
        return self._call(name, cbid, first, last, thread, external)

    def _call(self, name: str, cbid: int, begin: int, end: int, thread: int, external: int) -> int:
        """Add a call of the CUDA runtime; returns its correlation id."""
        self.correlation += 1
        args = {"External id": external} if external else {}
        args |= {"cbid": cbid, "correlation": self.correlation}
        self._span("cuda_runtime", name, begin, end, self.pid, thread, args)
        return self.correlation

    def _kernel(
        self, name: str, begin: int, end: int, stream: int, correlation: int, external: int,
        args: dict[str, Any],
    ) -> None:  # fmt: skip
        first = {"External id": external, "queued": 0, "device": self.device, "context": 1,
                 "stream": stream, "correlation": correlation}  # fmt: skip
        self._span("kernel", name, begin, end, self.device, stream, {**first, **args})

    def _span(
        self, category: str, name: str, begin: int, end: int, pid: int, tid: int,
        args: dict[str, Any],
    ) -> None:  # fmt: skip
        event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
        ts = self._ts(begin)
        event |= {"ts": ts, "dur": round(self._ts(end) - ts, 3), "args": args}
        self.events.append(event)


def _direction(op: Operation) -> str:
    return "send" if isinstance(op, Send) else "recv"


def _elements(op: Communication, size: int) -> tuple[int, int]:
    """Elements that a rank gives and gets."""
    if isinstance(op, Collective) and op.kind == "all_gather":
        return op.elements // size, op.elements
    if isinstance(op, Collective) and op.kind == "reduce_scatter":
        return op.elements, op.elements // size
    return op.elements, op.elements


def _arguments(kind: str, given: int, got: int, dtype: str) -> tuple[list[Any], list[str]]:
    """Shapes and types of the arguments of torch's operator."""
    if kind in ("all_gather", "reduce_scatter", "all_to_all"):
        return [[got], [given], [], [], [], []], [dtype, dtype, "", "", "", "Scalar"]
    return [[[given]], [], [], [], []], ["TensorList", "", "", "", "Scalar"]


def _list(ranks: list[int]) -> str:
    """Ranks in a field of an event: of long lists the first and the last."""
    if len(ranks) <= MOST_RANKS:
        return str(ranks)
    return f"[{', '.join(map(str, ranks[: MOST_RANKS - 1]))}, ..., {ranks[-1]}]"
