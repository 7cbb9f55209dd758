"""The torch ranges around each kernel, kept as frames rather than as one text a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SeqMarkers:
    """Column whose cell is the list of torch ranges from a kernel's innermost frame to the root.

    A cell lists `NAME[, seq = N][, op_id = M][, sizes = [..]]` once each, sorted by (seq, NAME),
    those without a number first. Nearly every cell differs from the others, so cells are made only
    while rows are written.

    Attributes
    ----------
    frame : int32 [n]
        Innermost frame of the kernel, -1: none, an empty list.
    frame_parent, frame_range : int32 [n_frames]
        Frame around the frame, less than it, -1 at a root; and the frame's range.
    label : int32 [n_ranges]
        Index into `labels`.
    seq, op_id : int64 [n_ranges]
        -1: no number.
    is_torch : uint8 [n_labels]
        1 for the labels that belong in the list.
    labels : sequence of str [n_labels]
        `NAME[, sizes = [..]]`.
    """

    frame: npt.NDArray[np.int32]
    frame_parent: npt.NDArray[np.int32]
    frame_range: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    seq: npt.NDArray[np.int64]
    op_id: npt.NDArray[np.int64]
    is_torch: npt.NDArray[np.uint8]
    labels: Sequence[str]

    def __len__(self) -> int:
        return len(self.frame)

    def names_and_sizes(self) -> list[tuple[str, str]]:
        """Each label as what stands before its numbers and what stands behind them."""
        return [_split(label) for label in self.labels]


def _split(label: str) -> tuple[str, str]:
    at = label.rfind(", sizes = [") if label.endswith("]") else -1
    return (label, "") if at < 0 else (label[:at], label[at:])
