"""Captures of torch.profiler in which operators launch kernels one after the other."""

from __future__ import annotations

from typing import Any

from support.kineto_files import KinetoFile

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108}


class Capture(KinetoFile):
    """A capture of one GPU, whose kernels start 100 ms after each other."""

    def __init__(self, gpu: dict[str, Any] = A100) -> None:
        super().__init__(deviceProperties=[gpu])
        self.at = self.n = 0

    def run(
        self, op: str | None, *kernels: tuple[str, int], grid: Any = (4096, 1, 1), **shapes: Any
    ) -> Capture:
        """An operator that launches kernels (name, ns), or copies of 1 MB ("Mem...")."""
        begin, self.at = self.at, self.at + 1000 * (1 + len(kernels))
        if op is not None:
            self.op(begin, self.at, op, **shapes)
        for i, (name, length) in enumerate(kernels):
            self.n += 1
            launch, start = begin + 1000 * i + 10, 10**9 + 10**8 * self.n
            self.launch(launch, launch + 5, self.n)
            if name.startswith("Mem"):
                self.copy(start, start + length, self.n, name, 1 << 20)
            else:
                self.kernel(start, start + length, self.n, name, grid=list(grid))
        return self
