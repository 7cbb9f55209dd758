"""A path to the Profile of what is in it."""

from __future__ import annotations

import os

from fastprof.assemble import assemble
from fastprof.attribute import attribute
from fastprof.profile import Profile
from fastprof.sources.database import Progress
from fastprof.sources.detect import read_trace


def open(path: str | os.PathLike[str], progress: Progress | None = None) -> Profile:
    """Read a capture and find out what every kernel of it was for.

    Parameters
    ----------
    path : path of a trace
        An Nsight Systems SQLite export. It is only read.
    progress : function, optional
        Called now and then with what is being read, the rows so far and about how many there are.

    Returns
    -------
    Profile
        One row a kernel, in order of start; one more for each CUDA graph that was captured as a
        whole.

    Raises
    ------
    BadInputError
        The file is missing, damaged, or not a trace that fastprof knows.
    """
    trace = read_trace(path, progress)
    return assemble(trace, attribute(trace))
