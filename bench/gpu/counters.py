"""FLOPs and bytes of kernels by the counters of Nsight Compute (ncu)."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.gpu.plan import PROGRAMS

BASE = [
    "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
    *(
        f"smsp__sass_thread_inst_executed_op_{kind}{what}_pred_on.sum"
        for kind in "fhd"
        for what in ("add", "mul", "fma")
    ),
]  # fmt: skip
_TENSOR = re.compile(r"^sm__ops_path_tensor_src_(?!\w*_sparsity)\w+", re.M)
_TENSOR_SUM = re.compile(r"sm__ops_path_tensor_src_(?!\w*_sparsity)(\w+)\.sum$")
_RANGE = re.compile(r"op:(\w+)")
_UNITS = {
    "byte": 1, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "nsecond": 1, "ns": 1, "usecond": 1e3,
    "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9,
}  # fmt: skip


def metrics(chip: str = "") -> list[str]:
    """The metrics to ask for: those of BASE, and operations of tensor cores of this GPU."""
    command = ["ncu", "--query-metrics", *(["--chip", chip] if chip else [])]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    return BASE + sorted({name + ".sum" for name in _TENSOR.findall(text)})


def record(path: Path, seconds: float) -> str:
    """Run the operators under ncu, with the table to a file; returns what it printed at its end."""
    if not shutil.which("ncu"):
        return "ncu: not on the PATH"
    command = [
        "ncu", "--nvtx", "--profile-from-start", "off", "--csv", "--page", "raw", "--print-units",
        "base", "--clock-control", "none", "--metrics", ",".join(metrics()), sys.executable,
        str(PROGRAMS / "operators.py"),
    ]  # fmt: skip
    with path.open("w") as file:
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=seconds
        )
    return "" if not done.returncode else f"ncu: exit code {done.returncode}\n{done.stderr[-2000:]}"


def _number(text: str) -> float:
    text = text.replace(",", "").strip()
    try:
        return float(text)
    except ValueError:
        return 0.0


def read(lines: Iterable[str]) -> list[dict]:
    """The kernels of ncu's raw page: operator, kernel, ns, bytes and FLOPs by their kind.

    The lines before the table are what the program and ncu print. A fused multiply-add is two
    operations. Kernels of backward passes run on another thread, outside the range `op:NAME`: they
    belong to the last operator. Those before the first are left out.
    """
    rows = csv.reader(line for line in lines if line.startswith('"'))
    header, units = next(rows), next(rows)
    kernels: list[dict] = []
    operator = ""
    for row in rows:
        named = dict(zip(header, row, strict=False))
        ranges = [match[1] for cell in row if (match := _RANGE.search(cell))]
        operator = ranges[0] if ranges else operator
        if not operator:
            continue
        values = {
            name: _number(cell) * _UNITS.get(unit.lower(), 1)
            for name, unit, cell in zip(header, units, row, strict=False)
            if "__" in name
        }
        kernels.append(
            {
                "op": operator,
                "kernel": named["Kernel Name"],
                "ns": values["gpu__time_duration.sum"],
                "read": values["dram__bytes_read.sum"],
                "written": values["dram__bytes_write.sum"],
                "tensor": {
                    match[1]: value
                    for name, value in values.items()
                    if (match := _TENSOR_SUM.match(name)) and value
                },
                "scalar": {kind: _scalar(values, kind) for kind in "fhd"},
            }
        )
    return kernels


def _scalar(values: dict[str, float], kind: str) -> float:
    """Floating-point operations outside tensor cores."""
    name = f"smsp__sass_thread_inst_executed_op_{kind}%s_pred_on.sum"
    return sum(values.get(name % what, 0.0) * n for what, n in (("add", 1), ("mul", 1), ("fma", 2)))
