"""What `fastprof run` keeps beside the trace of nsys, in the directory of the run.

Imports no numpy until it reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fastprof.model.metadata import Unrecorded

__all__ = ["FACTS", "unrecorded_beside"]

FACTS: Final = "run.json"
_TRACE: Final = "trace."  # trace.sqlite, trace.nsys-rep


def unrecorded_beside(path: str | os.PathLike[str]) -> Unrecorded | None:
    """The steps before the recording, if the trace lies in the directory of its run.

    Of several processes, the median. None if they are not known.
    """
    trace = Path(os.fsdecode(path))
    if not trace.name.startswith(_TRACE):
        return None
    from statistics import median

    from fastprof.model.metadata import Unrecorded, unrecorded_of

    try:
        facts = json.loads((trace.parent / FACTS).read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None
    known = [each for each in map(unrecorded_of, _recordings(facts)) if each is not None]
    if not known:
        return None
    return Unrecorded(
        max(each.steps for each in known), round(median(each.median_ns for each in known))
    )


def _recordings(facts: Any) -> Iterator[object]:
    """What each process keeps about its first recording, which is the one that nsys records."""
    processes = facts.get("processes") if isinstance(facts, dict) else None
    for process in processes if isinstance(processes, list) else ():
        recordings = process.get("recordings") if isinstance(process, dict) else None
        if isinstance(recordings, list) and recordings and isinstance(recordings[0], dict):
            yield recordings[0].get("unrecorded")
