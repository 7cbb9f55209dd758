"""The torch ranges around each kernel, kept as frames rather than as one text a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SeqMarkers:
    """Column whose cell is the list of torch ranges from a kernel's innermost frame to the root.

    A cell lists `HEAD[, seq = N][, op_id = M]TAIL` once each, sorted by (seq, HEAD), those without
    a number first. Their texts are all different, so they are made only while rows are written.

    Attributes
    ----------
    frame_of_row : int32 [n]
        Innermost frame of the kernel, -1: none, an empty list.
    frame_parent, range_of_frame : int32 [n_frames]
        Frame around the frame, less than it, -1 at a root; and the frame's range.
    label_of_range : int32 [n_ranges]
    seq_of_range, op_id_of_range : int64 [n_ranges]
        -1: no number.
    is_torch : uint8 [n_labels]
        1 for the labels that belong in the list.
    heads, tails : sequence of str [n_labels]
        Name of the range, and what follows the numbers: `, sizes = [[2, 3]]` or nothing.
    """

    frame_of_row: npt.NDArray[np.int32]
    frame_parent: npt.NDArray[np.int32]
    range_of_frame: npt.NDArray[np.int32]
    label_of_range: npt.NDArray[np.int32]
    seq_of_range: npt.NDArray[np.int64]
    op_id_of_range: npt.NDArray[np.int64]
    is_torch: npt.NDArray[np.uint8]
    heads: Sequence[str]
    tails: Sequence[str]

    def __len__(self) -> int:
        return len(self.frame_of_row)
