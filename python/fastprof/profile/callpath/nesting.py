"""Nest: ranges and the frames that they make, for what looks at both."""

from __future__ import annotations

from dataclasses import dataclass

from fastprof.model.markers import Meaning
from fastprof.model.trace import Int32, Ranges


@dataclass(frozen=True)
class Nest:
    """Ranges nested into frames; the frames are those of Attribution.

    Parameters
    ----------
    meanings : what each label means; it grows where labels do
    frame_parent, frame_range : [frames] the frame around each, and its row in `ranges`
    frame_of_range : [ranges] the first frame of each range
    """

    ranges: Ranges
    meanings: list[Meaning]
    frame_parent: Int32
    frame_range: Int32
    frame_of_range: Int32
