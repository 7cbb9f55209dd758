"""Write the table in docs/speed.md and docs/bench.png from measured figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.contenders import NAIVE, OPEN, PARSE, PROF, PYTHON
from bench.figures import Run
from bench.plot import NoPlotError, plot
from bench.report import ratio

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- made by python -m bench publish -->", "<!-- end of what it made -->"
HELP = "write the table and plot of docs/speed.md from figures"
NAMES = {
    OPEN: "`fastprof.open`",
    PARSE: "`fastprof parse -o net.dict`",
    PROF: "`fastprof prof --csv`",
    PYTHON["parse"]: "`parse` in plain Python (`bench/baseline`)",
    NAIVE: "`parse` with SQL for every kernel, as in PyProf (`bench/naive.py`)",
}
HEAD = "| {n} kernels | seconds | ns/kernel | floors | x plain Python | x naive | bytes/kernel |"


def table(run: Run) -> str:
    """The largest size with all of fastprof's contenders, in Markdown."""
    n = max(size.n_kernels for size in run.sizes if size.seconds(PARSE))
    return "\n".join([HEAD.format(n=f"{n:,}"), "|---" * 7 + "|", *_rows(run, n)])


def _rows(run: Run, n: int) -> Iterator[str]:
    size = run.size(n)
    for name, text in NAMES.items():
        seconds, measured = run.seconds(name, n)
        if seconds is None or size is None:
            continue
        mark, floors = "" if measured else "~", run.floors(name, n)
        is_own = name not in PYTHON.values() and name != NAIVE
        cells = [
            text,
            f"{mark}{seconds:.2f}",
            f"{mark}{1e9 * seconds / n:.0f}",
            f"{floors:.2f}" if floors else "",
            ratio(*run.against_python(name, n)) if is_own else "",
            ratio(*run.against_naive(name, n)) if name != NAIVE else "",
            f"{size.peak_bytes(name) / n:.0f}" if name in size.contenders else "",
        ]
        yield f"| {' | '.join(cells)} |"


def machine_line(run: Run) -> str:
    """The machine, and the sizes of the export and the dict file."""
    about = run.machine
    size = run.sizes[-1]
    return (
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}, SQLite "
        f"{about['sqlite']}, commit {about['commit']}; export {size.export_bytes / 1e6:.0f} MB, "
        f"dict file {size.dict_bytes / 1e6:.0f} MB, both in the file cache. `~`: from the largest "
        "size that was measured, in proportion."
    )


def put_into(readme: Path, text: str) -> None:
    """Replace the text between the two marks of a file."""
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{readme}: expected the lines {BEGIN} and {END}, found none; add them")
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figures", type=Path, nargs="?", default=ROOT / "bench" / "figures.json")


def run(options: argparse.Namespace) -> int:
    figures = Run.read(options.figures)
    put_into(ROOT / "docs" / "speed.md", f"{table(figures)}\n\n{machine_line(figures)}")
    try:
        plot(figures, ROOT / "docs" / "bench.png")
    except NoPlotError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
