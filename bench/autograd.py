"""Play calls, ops and autograd nodes onto a recorder, with the ranges that PyTorch pushes.

The numbers follow PyTorch: `seq` of a forward op is the number of the next node, so an op and the
ops around it share a number until a node takes it. Below the op that owns a node, in the backward
pass and without gradients there is no `seq`. Nodes run in descending order; a node without a number
accumulates the gradient of a parameter as soon as it is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.calls import Call, Node, Op, Shape
from bench.recorder import Counter, Recorder, Text, Thread

ENGINE = "autograd::engine::evaluate_function: "
ACCUMULATE = "torch::autograd::AccumulateGrad"
ANNOTATOR = "/opt/conda/lib/python3.11/site-packages/fastprof/annotate/wrap.py:88"


@dataclass(frozen=True)
class TapeEntry:
    """A node that the forward pass created, with its sequence number."""

    node: Node
    seq: int


class Autograd:
    """The forward and the backward pass of one step on one recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.tape: list[TapeEntry] = []
        self.n_gradients = 0

    def op_text(self, name: str, shapes: tuple[Shape, ...] = (), seq: int | None = None) -> Text:
        """`NAME[, seq = N], op_id = M[, sizes = [[..], ..]]` with the next op id."""
        numbers = [(Counter.OP_ID, self.recorder.n_op_ids)]
        self.recorder.n_op_ids += 1
        form = f"{name}, op_id = %d"
        if seq is not None:
            form = f"{name}, seq = %d, op_id = %d"
            numbers.insert(0, (Counter.SEQ, seq))
        if shapes:
            form += f", sizes = {[list(shape) for shape in shapes]}"
        return Text(form, tuple(numbers))

    def call(self, call: Call, frames: tuple[str, ...], registered: bool) -> None:
        """A Python call inside two PyProf markers; `registered`: the inner text is registered."""
        trace = {"traceMarker": [*frames, ANNOTATOR]}
        arguments = {"mod": call.mod, "op": call.op, "args": list(call.args)}
        outer, inner = (
            Text(str(trace), registered=True),
            Text(str(arguments), registered=registered),
        )
        with self.recorder.push_range(outer), self.recorder.push_range(inner):
            for op in call.ops:
                self.forward(op)

    def forward(self, op: Op) -> None:
        """An op that autograd records."""
        recorder = self.recorder
        with recorder.push_range(self.op_text(op.name, op.shapes, recorder.n_seq)):
            if op.node is None:
                for inner in op.inside:
                    self.forward(inner)
            else:
                self.tape.append(TapeEntry(op.node, recorder.n_seq))
                recorder.n_seq += 1
                for inner in op.inside:
                    self.plain(inner)
            self.launch(op)

    def plain(self, op: Op) -> None:
        """An op that autograd does not record: inside another, in backward, without gradients."""
        with self.recorder.push_range(self.op_text(op.name, op.shapes)):
            for inner in op.inside:
                self.plain(inner)
            self.launch(op)

    def launch(self, op: Op) -> None:
        for kernel in op.kernels:
            self.recorder.launch(kernel)

    def backward(self, all_reduce_every: int | None) -> None:
        """Run the tape backwards on the backward thread, and reduce gradients in buckets."""
        with self.recorder.on(Thread.BACKWARD):
            while self.tape:
                entry = self.tape.pop()
                self.run_node(entry.node, entry.seq)
                for _ in range(entry.node.n_parameters):
                    self.accumulate()
                    if all_reduce_every and self.n_gradients % all_reduce_every == 0:
                        self.all_reduce()

    def run_node(self, node: Node, seq: int) -> None:
        shapes = (node.grad,)
        with (
            self.recorder.push_range(self.op_text(ENGINE + node.name, shapes, seq)),
            self.recorder.push_range(self.op_text(node.name, shapes, seq)),
        ):
            for op in node.work:
                self.plain(op)

    def accumulate(self) -> None:
        self.n_gradients += 1
        with (
            self.recorder.push_range(self.op_text(ENGINE + ACCUMULATE)),
            self.recorder.push_range(self.op_text(ACCUMULATE)),
        ):
            self.plain(Op("aten::add_", (), ("accumulate",)))

    def all_reduce(self) -> None:
        """Sum a bucket of gradients over the processes, on the communication stream."""
        recorder = self.recorder
        with recorder.push_range(self.op_text("nccl:all_reduce", ((26_214_400,),))):
            recorder.call("cudaEventRecord_v3020", 900, 2_400)
            recorder.call("cudaStreamWaitEvent_v3020", 700, 1_900)
            with recorder.push_range(Text("ncclAllReduce", registered=True), domain=1):
                recorder.launch("all_reduce")
