"""uPlot, the library of the roofline and memory charts: axes, zoom and curves."""

from __future__ import annotations

from typing import Final

UPLOT: Final = (
    "vendor/uplot-1.6.32/uPlot.min.css",
    "vendor/uplot-1.6.32/uPlot.iife.min.js",
    "plot.js",
    "plot.css",
)
