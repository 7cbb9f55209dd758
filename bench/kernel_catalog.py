"""The GPU kernels of a training step, from kernels.tsv: name, launch geometry, time.

The names are those of cuBLAS, cuDNN, NCCL and PyTorch kernels in real exports of Nsight Systems;
times are typical of a data-centre GPU, rounded.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kernel:
    """One kernel function with the geometry it is always launched with.

    `shared` is (static, dynamic) shared memory in bytes, `duration` the mean time in ns, `api` the
    API function that launches it, `stream` the stream it runs on.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    shared: tuple[int, ...]
    duration: int
    stream: int
    api: str

    @property
    def short_name(self) -> str:
        """The function's own name, without namespaces, template arguments and parameters."""
        plain = self.name.removeprefix("void ").replace("<unnamed>::", "")
        return plain.split("<")[0].split("(")[0].split("::")[-1]


def read_catalog(path: Path) -> dict[str, Kernel]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["key"]: kernel_of(row) for row in rows}


def kernel_of(row: dict[str, str]) -> Kernel:
    return Kernel(
        name=row["name"],
        grid=integers(row["grid"]),
        block=integers(row["block"]),
        registers=int(row["registers"]),
        shared=integers(row["shared"]),
        duration=int(row["duration"]),
        stream=int(row["stream"]),
        api=row["api"],
    )


def integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


KERNELS = read_catalog(Path(__file__).with_name("kernels.tsv"))
