"""The look of the charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that people with colour blindness can distinguish (Okabe and Ito).
COLOURS: Final = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442",
)  # fmt: skip
GREY: Final = "#999999"


def axes_of(ax: Axes | None, height: float = 4.5) -> Axes:
    """The axes given, or those of a new figure of pyplot, 9 inches wide."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    made: Axes = pyplot.subplots(figsize=(9, height), layout="constrained")[1]
    return made


def dressed(ax: Axes, title: str, x: str, y: str) -> Axes:
    """The axes with title, labels with units, and a light grid behind the data."""
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, which="major", linewidth=0.4, alpha=0.5)
    ax.set_axisbelow(True)
    return ax
