"""The headings, figures and help of `history`. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading

# Figure -> the column of its values.
FIGURES: Final = {
    "step": Heading("step_ns", "step", "ns", "mean length of a step; without steps, of a capture"),
    "busy": Heading("busy_ns", "busy", "ns", "part of the step with GPU work"),
    "idle": Heading("idle_ns", "idle", "ns", "part of the step without GPU work"),
    "mfu": Heading("mfu", "MFU", "share", "model FLOPs utilisation, mean of ranks", decimals=1),
    "memory": Heading("peak_bytes", "memory", "bytes", "most memory of a GPU, as recorded"),
}
GROUPS: Final = {"ops": "op", "layers": "layer"}  # figures that stand for several: op:NAME, ...
MOST: Final = 5  # operators, layers of a group

COLUMNS: Final = (
    Heading("capture", "capture", "", "number of the capture, in the order of saving"),
    Heading("saved", "saved", "", "when it was saved, UTC", keeps_start=True),
    Heading("tags", "tags", "", "tags that --save --tag gave it", min_width=16),
    *FIGURES.values(),
    Heading("steps", "steps", "", "number of measured steps", rank=2),
    Heading("change", "change", "", "figures whose level changes here, and by how much"),
    Heading("names", "files", "", "files of the capture", in_text=False, keeps_end=True),
    Heading("version", "fastprof", "", "version that saved it", in_text=False),
)


def heading_of(figure: str) -> Heading:
    """The heading of a figure; of an operator or layer, its time in a step.

    figure : of FIGURES, or op:NAME, layer:NAME
    """
    if figure in FIGURES:
        return FIGURES[figure]
    return Heading(
        figure, figure.partition(":")[2], "ns", "its busy time in a step", keeps_end=True
    )
