"""Builds Kineto traces of programs: calls inside of calls, and the kernels that they launch."""

from __future__ import annotations

from typing import Any

from support.kineto_files import KinetoFile

ENGINE = "autograd::engine::evaluate_function: "
FLOAT, HALF = "float", "c10::Half"


class Program:
    """A trace builder: `run` launches kernels inside ranges, outermost first.

    A range is (name, shapes) or (name, shapes, type or types); shapes is None for no shapes.
    """

    def __init__(self) -> None:
        self.trace, self.time, self.corr = KinetoFile(), 0, 0

    def run(self, ranges: Any, *kernels: str, seq: int | None = None, tid: int = 1) -> Program:
        start, end = self.time, self.time + 100
        for depth, (name, dims, *types) in enumerate(ranges):
            types = types[0] if types else FLOAT
            if isinstance(types, str):
                types = [types if shape else "" for shape in dims or []]
            self.trace.op(start + depth, end - depth, name, tid, seq=seq,
                          dims=dims, types=types if dims else None)  # fmt: skip
        for i, name in enumerate(kernels):
            self.launch(name, start + 30 + 5 * i, tid)
        self.time = end
        return self

    def launch(self, name: str, at: int, tid: int = 1) -> None:
        self.corr += 1
        self.trace.launch(at, at + 2, self.corr, tid)
        self.trace.kernel(10_000 + 20 * self.corr, 10_010 + 20 * self.corr, self.corr, name)
