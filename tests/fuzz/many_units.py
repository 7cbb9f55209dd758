"""Captures with many of one thing: threads, streams, names, nested ranges, and so on.

`write(shape, n, path)` makes the capture with n of them; all else is the same for every n.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.exports import Export
from support.kineto_files import PID, TID, KinetoFile
from support.nvprof_files import NvprofFile

US = 1000  # ns
UNIT = 20 * US  # the time from one unit to the next


class Kineto(KinetoFile):
    """A trace of torch.profiler."""

    SUFFIX = ".json"

    def step(self, start: int, end: int, number: int) -> None:
        self.annotation(start, end, f"ProfilerStep#{number}")

    def range(self, start: int, end: int, name: str, tid: int = TID, pid: int = PID) -> None:
        self._span("user_annotation", start, end, name, tid, pid, {})

    def work(self, at: int, i: int, *, op: str = "aten::mm", kernel: str = "sgemm", tid: int = TID,
             pid: int = PID, device: int = 0, stream: int = 7, rows: int = 8,
             call: str = "cudaLaunchKernel", **others: Any) -> None:  # fmt: skip
        """An operator, its call and its kernel."""
        dims = [[rows, 64], [64, 64]]
        self.op(at, at + 8 * US, op, tid, pid=pid, external=i + 1, dims=dims, types=["float"] * 2)
        self.launch(at + 2 * US, at + 3 * US, i + 1, tid, call, pid=pid)
        self.kernel(at + 5 * US, at + 20 * US, i + 1, kernel, device=device, stream=stream,
                    **others)  # fmt: skip


class Nsight(Export):
    """An export of Nsight Systems, as of emit_nvtx."""

    SUFFIX = ".sqlite"

    def step(self, start: int, end: int, number: int) -> None:
        self.range(start, end, f"step {number}")

    def range(self, start: int, end: int, name: str, tid: int = TID, pid: int = PID) -> None:
        self.push_pop(start, end, name, tid, pid=pid)

    def work(self, at: int, i: int, *, op: str = "aten::mm", kernel: str = "sgemm", tid: int = TID,
             pid: int = PID, device: int = 0, stream: int = 7, rows: int = 8,
             call: str = "cudaLaunchKernel_v7000", **others: Any) -> None:  # fmt: skip
        """An operator, its call and its kernel."""
        text = f"{op}, op_id = {i + 1}, sizes = [[{rows}, 64], [64, 64]]"
        self.push_pop(at, at + 8 * US, text, tid, pid=pid)
        self.launch(at + 2 * US, at + 3 * US, i + 1, tid, call, pid=pid)
        self.kernel(at + 5 * US, at + 20 * US, i + 1, name=kernel, device=device, stream=stream,
                    pid=pid, **others)  # fmt: skip


class Nvprof(NvprofFile):
    """A file of NVProf, as of emit_nvtx."""

    SUFFIX = ".sql"

    def step(self, start: int, end: int, number: int) -> None:
        self.range(start, end, f"step {number}")

    def range(self, start: int, end: int, name: str, tid: int = TID, pid: int = PID) -> None:
        self.push_pop(start, end, name, tid, pid=pid)

    def work(self, at: int, i: int, *, op: str = "aten::mm", kernel: str = "sgemm", tid: int = TID,
             pid: int = PID, device: int = 0, stream: int = 7, rows: int = 8) -> None:  # fmt: skip
        """An operator, its call and its kernel."""
        text = f"{op}, op_id = {i + 1}, sizes = [[{rows}, 64], [64, 64]]"
        self.push_pop(at, at + 8 * US, text, tid, pid=pid)
        self.launch(at + 2 * US, at + 3 * US, i + 1, tid, pid=pid)
        self.kernel(at + 5 * US, at + 20 * US, i + 1, name=kernel, device=device, stream=stream)


Capture = Kineto | Nsight | Nvprof


def _parallel(arguments: Callable[[int], dict[str, Any]], *, n_steps: int = 4) -> Any:
    """n units in a row, in some steps; the arguments of `work` for unit i."""

    def make(capture: Capture, n: int) -> None:
        _steps(capture, n, n_steps)
        for i in range(n):
            capture.work(i * UNIT, i, **arguments(i))

    return make


def _steps(capture: Capture, n: int, n_steps: int) -> None:
    edges = [n * k // n_steps * UNIT for k in range(n_steps + 1)]
    for number, start in enumerate(edges[:-1]):
        capture.step(start, edges[number + 1] - 1, number)


def _ranges(capture: Capture, n: int) -> None:
    """Each unit has a range of its own name."""
    _steps(capture, n, 4)
    for i in range(n):
        capture.range(i * UNIT, i * UNIT + 9 * US, f"part {i}")
        capture.work(i * UNIT, i)


def _nested(name: Callable[[int], str], **others: Callable[[int], Any]) -> Any:
    """n ranges inside each other, and one kernel in the innermost."""

    def make(capture: Capture, n: int) -> None:
        end = 3 * n * US + 100 * US
        for i in range(n):
            if others:
                fields = {key: value(i) for key, value in others.items()}
                capture._span("python_function", i * US, end - i * US, name(i), TID, PID, fields)  # type: ignore[union-attr, call-arg]
            else:
                capture.range(i * US, end - i * US, name(i))
        for i in range(3):
            capture.work(n * US + i * UNIT, i)

    return make


def _crossing(capture: Capture, n: int) -> None:
    """Range i begins before range i - 1 ends; at most 1000 are open at a time."""
    _steps(capture, n, 4)
    for i in range(n):
        capture.range(i * UNIT, i * UNIT + min(n, 1000) * UNIT + US, f"crossing {i % 50}")
        capture.work(i * UNIT, i)


def _every_step(capture: Capture, n: int) -> None:
    for i in range(n):
        capture.step(i * UNIT, (i + 1) * UNIT - 1, i)
        capture.work(i * UNIT, i)


def _modules(capture: Kineto, n: int) -> None:
    """n modules beside each other, each with an operator."""
    _steps(capture, n, 4)
    for i in range(n):
        fields = {"Python id": i + 1, "Python parent id": None, "Python module id": i}
        capture._span("python_function", i * UNIT, i * UNIT + 9 * US, f"nn.Module: Linear_{i}",
                      TID, PID, fields)  # fmt: skip
        capture.work(i * UNIT, i)


def _allocations(capture: Kineto, n: int) -> None:
    """n blocks, allocated in turn and freed in turn."""
    _steps(capture, n, 4)
    for i in range(n):
        told = {"Addr": 4096 * (i + 1), "Device Id": 0, "Device Type": 1}
        at = i * UNIT
        capture.memory(at + US, 512, **told, **{"Total Allocated": 512, "Total Reserved": 1 << 20})
        capture.memory(
            n * UNIT + at + US, -512, **told, **{"Total Allocated": 0, "Total Reserved": 1 << 20}
        )
    for i in range(8):
        capture.work(i * UNIT, i)


def _collectives(capture: Kineto, n: int) -> None:
    _steps(capture, n, 4)
    for i in range(n):
        told = {"Collective name": "allreduce", "In msg nelems": 64 + i, "Out msg nelems": 64 + i,
                "dtype": "Float", "Group size": 8, "Process Group Name": str(i % 4)}  # fmt: skip
        capture.op(i * UNIT, i * UNIT + 8 * US, "record_param_comms", external=i + 1, **told)
        capture.launch(i * UNIT + US, i * UNIT + 2 * US, i + 1)
        capture.kernel(
            i * UNIT + 3 * US, i * UNIT + 20 * US, i + 1,
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", **told,
        )  # fmt: skip


def _backward(capture: Kineto, n: int) -> None:
    """n operators on one thread, and the backward of each on another."""
    _steps(capture, 2 * n, 2)
    for i in range(n):
        capture.op(i * UNIT, i * UNIT + 9 * US, "aten::linear", seq=i)
        capture.work(i * UNIT, i)
        at = (2 * n - i) * UNIT
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        capture.op(at - US, at + 9 * US, name, 2, seq=i)
        capture.work(at, n + i, tid=2, op="AddmmBackward0")


def _captured(capture: Nsight, n: int) -> None:
    """n graphs of a node each, captured in an operator of their own, and replayed once."""
    _steps(capture, 2 * n, 2)
    for i in range(n):
        at = i * UNIT
        capture.push_pop(at, at + 8 * US, f"aten::op{i}, sizes = [[8, 64]]", TID)
        capture.graph_node_event(at + 2 * US, at + 3 * US, TID, i + 1)
    for i in range(n):
        capture.work(
            (n + i) * UNIT, i, op="replay", call="cudaGraphLaunch_v10000", graph_node=i + 1
        )


def _nccl(capture: Nsight, n: int) -> None:
    """n collectives of their own sizes, each below a range of NCCL."""
    _steps(capture, n, 4)
    for i in range(n):
        capture.push_pop(i * UNIT + US, i * UNIT + 7 * US, "ncclAllReduce", TID)
        capture.work(i * UNIT, i, op="c10d::allreduce_", rows=i + 1,
                     kernel="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")  # fmt: skip


def _graph(i: int) -> dict[str, Any]:
    return {"op": "replay", "call": "cudaGraphLaunch", "graph id": i, "graph node id": (i << 32)}


BOTH: dict[str, Callable[[Any, int], None]] = {
    "kernels": _parallel(lambda i: {}),
    "one-step": _parallel(lambda i: {}, n_steps=1),
    "threads": _parallel(lambda i: {"tid": i + 1}),
    "processes": _parallel(lambda i: {"pid": i + 1}),
    "devices": _parallel(lambda i: {"device": i}),
    "streams": _parallel(lambda i: {"stream": i}),
    "kernel-names": _parallel(lambda i: {"kernel": f"kernel_{i}"}),
    "operators": _parallel(lambda i: {"op": f"aten::op{i}"}),
    "shapes": _parallel(lambda i: {"rows": i + 1}),
    "calls": _parallel(lambda i: {"call": f"cudaCall{i}"}),
    "ranges": _ranges,
    "layers": _parallel(lambda i: {"op": f"layer:encoder.{i}"}),
    "nested": _nested(lambda i: f"r{i % 50}"),
    "nested-names": _nested(lambda i: f"part {i}"),
    "crossing": _crossing,
    "steps": _every_step,
}
KINETO_ONLY: dict[str, Callable[[Any, int], None]] = {
    "modules": _modules,
    "nested-modules": _nested(
        lambda i: f"nn.Module: Block_{i}",
        **{
            "Python id": lambda i: i + 1,
            "Python parent id": lambda i: i or None,
            "Python module id": lambda i: i,
        },
    ),
    "frames": _nested(
        lambda i: f"net.py({i + 1}): forward",
        **{"Python id": lambda i: i + 1, "Python parent id": lambda i: i or None},
    ),
    "graphs": _parallel(_graph),
    "collectives": _collectives,
    "allocations": _allocations,
    "backward": _backward,
}
NSYS_ONLY: dict[str, Callable[[Any, int], None]] = {"graphs": _captured, "collectives": _nccl}
_READERS: dict[str, tuple[Callable[[], Any], dict[str, Callable[[Any, int], None]]]] = {
    "kineto": (Kineto, BOTH | KINETO_ONLY),
    "nsys": (Nsight, BOTH | NSYS_ONLY),
    # Calls have numbers, of which there are some hundreds.
    "nvprof": (Nvprof, {name: each for name, each in BOTH.items() if name != "calls"}),
}
SHAPES = [f"{reader}/{name}" for reader, (_, shapes) in _READERS.items() for name in shapes]


def write(shape: str, n: int, folder: Path) -> Path:
    """Write the capture with n units of a shape of SHAPES; its path."""
    reader, name = shape.split("/")
    make, shapes = _READERS[reader]
    capture = make()
    shapes[name](capture, n)
    return capture.write(folder / f"{reader}-{name}-{n}{capture.SUFFIX}")
