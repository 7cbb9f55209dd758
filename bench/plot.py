"""Draw docs/bench.png: seconds by number of kernels, both logarithmic, a line per contender."""

from __future__ import annotations

from pathlib import Path

from bench.contenders import CONTENDERS, FLOOR, NAIVE, OPEN, PARSE, PROF, PROF_DICT, PYTHON
from bench.figures import Run

# Colours for the colour-blind (Okabe and Ito). The background is white, because the page may be
# light or dark.
STYLES = {
    NAIVE: ("#D55E00", "s", "--"),
    PYTHON["parse"]: ("#E69F00", "s", "-"),
    PYTHON["open"]: ("#E69F00", "o", "--"),
    PARSE: ("#0072B2", "s", "-"),
    PROF: ("#56B4E9", "^", "-"),
    PROF_DICT: ("#009E73", "v", "-"),
    OPEN: ("#0072B2", "o", "--"),
    FLOOR: ("#000000", "x", ":"),
}
INSTALL = "the plot needs matplotlib: pip install 'fastprof[bench]', or pip install matplotlib"


class NoPlotError(Exception):
    """matplotlib is not installed; the message explains how to install it."""


def plot(run: Run, path: Path) -> None:
    """Draw all contenders that were measured.

    Raises
    ------
    NoPlotError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoPlotError(INSTALL) from error
    figure = Figure(figsize=(7, 4.4), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for name in (name for name in STYLES if name in CONTENDERS):
        points = [
            (size.n_kernels, seconds) for size in run.sizes if (seconds := size.seconds(name))
        ]
        if points:
            colour, marker, line = STYLES[name]
            axes.plot(*zip(*points, strict=True), line, marker=marker, color=colour, label=name)
    axes.set(xscale="log", yscale="log", xlabel="kernels", ylabel="seconds")
    axes.set_xticks([size.n_kernels for size in run.sizes])
    axes.grid(which="major", color="#cccccc", linewidth=0.6)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False)
    figure.savefig(path, dpi=110)
