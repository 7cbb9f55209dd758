"""What `fastprof run` keeps beside a trace, in the directory of the run.

Imports no numpy until it reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastprof._system.regex import regex

if TYPE_CHECKING:
    from fastprof.model.metadata import Unrecorded

FACTS: Final = "run.json"
COMPILED: Final = "compiled"  # the folder with artefacts of torch.compile
_RANK: Final = regex(r"\.rank(\d+)\.")
_LARGEST: Final = 1 << 24  # bytes
_TRACE: Final = "trace."  # trace.sqlite, trace.nsys-rep


def unrecorded_beside(path: str | os.PathLike[str]) -> Unrecorded | None:
    """The steps before the recording, if the trace lies in the directory of its run.

    Of several processes, the median. None if they are not known.
    """
    trace = Path(os.fsdecode(path))
    if not trace.name.startswith(_TRACE):
        return None
    from fastprof.model.metadata import median_unrecorded

    try:
        facts = facts_in(trace.parent)
    except (OSError, ValueError):
        return None
    return median_unrecorded(_recordings(facts))


def compiled_beside(path: str | os.PathLike[str]) -> list[str]:
    """The artefacts of torch.compile, if the trace lies in the directory of its run.

    Of several ranks, the structured logs of the trace's own; the whole folder if there are none.
    """
    trace = Path(os.fsdecode(path))
    result = trace.parent / COMPILED
    if not ((trace.parent / FACTS).is_file() and result.is_dir()):
        return []
    rank = _RANK.search(trace.name)
    own = sorted(result.glob(f"*_rank_{rank[1]}_*.log")) if rank else []
    return [str(each) for each in own or [result]]


def facts_in(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """The facts of a run; their values may have any type.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is damaged; the message says how.
    """
    import json

    path = Path(directory) / FACTS
    if not path.is_file():  # a pipe would block
        raise ValueError("is not a file")
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"is larger than {_LARGEST >> 20} MB")
    try:
        facts = json.loads(content.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("is damaged: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"is damaged: {error}") from None
    if not isinstance(facts, dict):
        raise ValueError("is damaged: expected a JSON object")
    return facts


def _recordings(facts: Any) -> Iterator[Unrecorded | None]:
    """What each process keeps about its first recording, which is the one that nsys records."""
    from fastprof.model.metadata import unrecorded_of

    processes = facts.get("processes")
    for process in processes if isinstance(processes, list) else ():
        recordings = process.get("recordings") if isinstance(process, dict) else None
        if isinstance(recordings, list) and recordings and isinstance(recordings[0], dict):
            yield unrecorded_of(recordings[0].get("unrecorded"), recordings[0].get("after"))
