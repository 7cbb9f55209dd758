"""Write docs/coverage.md, the coverage of real traces: `python docs/make_coverage.py [DIRECTORY]`.

DIRECTORY contains folders of traces. Default: `$FASTPROF_DATA`, else `../shared/data` next to the
repository.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import fastprof
from fastprof._system.output_file import output_file
from fastprof.analysis.repro.script import script
from fastprof.errors import ReportError
from fastprof.writers.info import describe

PAGE = Path(__file__).parent / "coverage.md"
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TRACES = ("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*.nvvp", "pyprof/*.sql*",
          "rocpd/*.db", "rocpd/*.json.gz")  # fmt: skip
# Depths of `fastprof info`, and the headers of their columns.
DEPTHS = {
    "launch": "launch", "op": "op", "shapes": "shapes", "cost": "cost", "source line": "line"
}  # fmt: skip

HEAD = f"""# Coverage

<!-- Made by docs/make_coverage.py from the traces; a test compares where they are. -->

Share of the GPU time of real traces in kernels with a launch, an operator, shapes, a known cost and
a source line, as `fastprof info` reports it. A report contains only what was recorded: without
`record_shapes` there are no shapes, without stacks no source lines, and hand-written ranges name no
operators. `fastprof prof --unknown FILE` lists the rest.

Of the compiled programs and graphs here, no artefacts of torch.compile and no annotations of graph nodes are
published: their shares are those of the trace alone. Triton kernels have an operator and a cost by name and tensors,
marked as an estimate: 9.7 % of the GPU time of `sd35_compile_mi300`, 6.7 % of `triton_compile`.

The last column is the share of this time, without communication, in calls that `fastprof repro --top 200` repeats in
a script, where the libraries that define their operators are installed. The rest is kernels without shapes, copies
between host and GPU, what torch.compile made, functions of Python, and calls of which types, numbers or lists are not
recorded (all of FBGEMM's before torch 2.1).

| trace | GPU | kernels | GPU time, ms | {" | ".join(DEPTHS.values())} | repro |
|---|---|--:|--:|{"--:|" * len(DEPTHS)}--:|
"""


def page(directory: Path) -> str:
    """The page, with a row for each trace in a folder of the directory."""
    files = sorted(file for pattern in TRACES for file in directory.glob(pattern))
    if not files:
        sys.exit(f"{directory}: no traces; pass their directory, or set FASTPROF_DATA")
    rows = []
    for file in files:
        profile = fastprof.open(file, copies=False)
        name = file.relative_to(directory).as_posix()
        rows.append(row(name, describe(profile), repeated(profile)))
    return HEAD + "".join(rows)


def repeated(profile: fastprof.Profile) -> float:
    """The share of the GPU time without communication in calls that a script repeats."""
    try:
        return script(profile, where=["kind!=communication"], top=200).share
    except ReportError:
        return 0.0


def row(name: str, info: dict[str, Any], share: float) -> str:
    """The row of a trace, from its `describe`.

    share : see `repeated`
    """
    names = sorted({gpu["name"] or "unknown" for gpu in info["gpus"] if gpu["rows"]})
    shares = {each["depth"]: each["share"] for each in info["coverage"]}
    cells = [
        f"`{name}`",
        ", ".join(names) or "-",
        str(sum(each["count"] for each in info["work"].values())),
        f"{info['gpu_time'] / 1e6:.1f}",
        *(percent(shares[depth]) for depth in DEPTHS),
        percent(share if info["gpu_time"] else None),
    ]
    return f"| {' | '.join(cells)} |\n"


def percent(share: float | None) -> str:
    """A share in percent, rounded down; `-` without GPU time."""
    return "-" if share is None else f"{int(share * 1000 + 1e-9) / 10:g} %"


if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FASTPROF_DATA", SHARED_DATA)
    text = page(Path(wanted))
    with output_file(PAGE) as file:
        file.write(text.encode())
