"""The tables of `fastprof stats` and their columns, by nsys's names. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import dataclass
from fastprof.errors import ReportError
from fastprof.model.heading import Heading, unknown_name


@dataclass(frozen=True)
class StatsTable:
    """A table: nsys's title and column names.

    Parameters
    ----------
    title : str
    columns : tuple of str
    is_default : made if no table is named, as by nsys
    """

    title: str
    columns: tuple[str, ...]
    is_default: bool = True

    @property
    def headings(self) -> tuple[Heading, ...]:
        """The headings; units are part of the names."""
        return tuple(Heading(name, name, decimals=_decimals(name)) for name in self.columns)


def _decimals(name: str) -> int | None:
    words = name.partition(" (")[0].split()[-1]
    if "(MB)" in name:
        return None if name == "Count" else 3
    is_mean = words.endswith(("Avg", "Med", "StdDev")) or name.startswith("Avg ")
    return 1 if is_mean or name == "Time (%)" else 0


def _spread(unit: str, prefix: str = "") -> tuple[str, ...]:
    return tuple(f"{prefix}{text} ({unit})" for text in ("Avg", "Med", "Min", "Max", "StdDev"))


def _times(count: str) -> tuple[str, ...]:
    return ("Time (%)", "Total Time (ns)", count, *_spread("ns"))


TABLES: Final = {
    "nvtx_sum": StatsTable(
        "NVTX Range Summary",
        (*_times("Instances"), "Style", "Range"),
    ),
    "cuda_api_sum": StatsTable(
        "CUDA API Summary",
        (*_times("Num Calls"), "Name"),
    ),
    "cuda_gpu_kern_sum": StatsTable(
        "CUDA GPU Kernel Summary",
        (*_times("Instances"), "Name"),
    ),
    "cuda_gpu_mem_time_sum": StatsTable(
        "CUDA GPU MemOps Summary (by Time)",
        (*_times("Count"), "Operation"),
    ),
    "cuda_gpu_mem_size_sum": StatsTable(
        "CUDA GPU MemOps Summary (by Size)",
        ("Total (MB)", "Count", *_spread("MB"), "Operation"),
    ),
    "cuda_kern_exec_sum": StatsTable(
        "CUDA Kernel Launch & Exec Time Summary",
        (
            *("PID", "TID", "DevId", "Count", "QCount"),
            *(name for prefix in "TAQK" for name in _spread("ns", prefix)),
            *("API Name", "Kernel Name"),
        ),
        is_default=False,
    ),
    "nvtx_kern_sum": StatsTable(
        "NVTX Range Kernel Summary",
        (
            *("NVTX Range", "Style", "PID", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)"),
            *(*_spread("ns"), "Kernel Name"),
        ),
        is_default=False,
    ),
    "nvtx_gpu_proj_sum": StatsTable(
        "NVTX GPU Projection Summary",
        (
            *("Range", "Style", "Total Proj Time (ns)", "Total Range Time (ns)"),
            *("Range Instances", *_spread("ns", "Proj "), "Total GPU Ops", "Avg GPU Ops"),
            *("Avg Range Lvl", "Avg Num Child"),
        ),
        is_default=False,
    ),
    "nvtx_gpu_proj_trace": StatsTable(
        "NVTX GPU Projection Trace",
        (
            *("Name", "Projected Start (ns)", "Projected Duration (ns)", "Orig Start (ns)"),
            *("Orig Duration (ns)", "Style", "PID", "TID", "NumGPUOps", "Lvl", "NumChild"),
            *("RangeId", "ParentId", "RangeStack"),
        ),
        is_default=False,
    ),
}


def table_name(name: str) -> str:
    """The name of a table, checked.

    Raises
    ------
    ReportError
        There is no such table; the message names the nearest.
    """
    if name not in TABLES:
        raise ReportError(unknown_name("table", name, list(TABLES)))
    return name


DESCRIPTION: Final = (
    """\
The tables of nsys stats, with its column names, units, rounding and order, from Nsight Systems,
NVProf and torch.profiler. Definitions are those of NVIDIA's documentation of nsys stats.

  fastprof stats net.sqlite
  fastprof stats net.json.gz cuda_gpu_kern_sum --csv

Tables:
"""
    + "".join(f"  {name.ljust(22)} {table.title}\n" for name, table in TABLES.items())
    + """
A range contains the GPU work whose API call starts inside the range, on its thread. Lvl and
NumChild count all open ranges of the thread that contain GPU work, RangeId is the row of
Profile.ranges. Ranges that were not closed are left out of nvtx_sum, and kernels outside all ranges
of nvtx_kern_sum; nsys ends the ranges with the recording, and gives the kernels an empty range.
Where ranges are nested so deep that the stacks of nvtx_gpu_proj_trace hold over 10 000 000 ids, a
stack keeps at least its 256 innermost ones and starts with "...".
"""
)
