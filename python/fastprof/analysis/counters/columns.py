"""The headings of `counters`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading

COLUMNS: Final = (
    Heading("kernels", "kernels", "", "kernels with counters"),
    Heading("gpu_ns", "gpu", "ns", "GPU time of these kernels"),
    Heading(
        "moved_bytes",
        "moved",
        "bytes",
        "bytes between the GPU and its memory: FETCH_SIZE and WRITE_SIZE",
        rank=1,
    ),
    Heading("fetched_bytes", "fetched", "bytes", "FETCH_SIZE, in bytes", in_text=False),
    Heading("written_bytes", "written", "bytes", "WRITE_SIZE, in bytes", in_text=False),
    Heading(
        "bytes_per_s",
        "rate",
        "bytes/s",
        "bytes moved by GPU time; the recorder runs kernels one by one while it counts",
        digits=5,
        largest_unit="GB/s",
    ),
    Heading(
        "model_bytes",
        "model",
        "bytes",
        "bytes of these kernels by the formulas of their operators, where known",
        same_unit="moved_bytes",
    ),
    Heading(
        "moved_by_model",
        "moved/model",
        "",
        "bytes moved by those of the formulas, of kernels with both; above 1, data is moved again",
        digits=2,
    ),
)

DESCRIPTION: Final = """\
Hardware counters of kernels, which rocprofv3 records in a rocpd database or in JSON
(--pmc): their sums over the kernels of each row, a column for each counter.
Where FETCH_SIZE and WRITE_SIZE were recorded, the bytes that kernels moved
stand beside those that the formulas of their operators give.

  fastprof counters results.db
  fastprof prof -c idx,kernel,counter:FETCH_SIZE results.db    # of each kernel
"""
