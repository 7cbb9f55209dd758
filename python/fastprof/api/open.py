"""`fastprof.open`: a trace file, or a stream of dict lines, to a Profile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from fastprof.api.profile import Profile
from fastprof.profile.load import load, load_dict_lines
from fastprof.readers.sqlite.database import Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fastprof.profile.load import LoadOptions

Path = str | os.PathLike[str]


def open(
    path: Path,
    progress: Progress | None = None,
    *,
    copies: bool = True,
    mine: str | Sequence[str] = (),
    graph_capture: Path | Sequence[Path] = (),
    compiled: Path | Sequence[Path] = (),
    graph_annotations: Path | None = None,
) -> Profile:
    """Read a trace and attribute its kernels to operators, layers and source lines.

    Parameters
    ----------
    path : path of a trace or of dict lines
        An SQLite export or report of Nsight Systems (a report needs `nsys` on the PATH), a trace of
        torch.profiler, a database or JSON of AMD's rocprofv3, a file of rocprof-sys,
        rocmProfileData or NVProf, or the output of `fastprof parse` or PyProf. The file is opened
        read-only. A pipe can provide dict lines only.
    progress : function, optional
        Called repeatedly with what is being read, the rows so far and the estimated total.
    copies : bool
        Include a row for each memory copy and memset, as the reports of the command line do.
        Without them, the rows are those of `fastprof prof`, and busy and idle time, steps and
        causes are those of kernels alone. Dict lines have no copies.
    mine : str or sequence of str
        Glob patterns of your own source files and directories, for the column `line`. Patterns are
        compared with the end of a path. By default, your files are those outside installed
        packages and the interpreter.
    graph_capture : path or list of paths, optional
        Traces recorded while CUDA or HIP graphs were captured, or directories of such traces
        (.json, .json.gz, .sqlite). Kernels of replayed graphs in `path` get operator, arguments,
        layer and line from there; `Profile.graph_capture` has a summary. Captures in the trace
        itself need no option.
    compiled : path or list of paths, optional
        Folders with artefacts of torch.compile, or files: structured logs (the program ran with
        `INDUCTOR_PROVENANCE=1 TORCH_TRACE=DIR`), folders of its debug mode, and
        `kernel_information.json`. The reports `lines`, `layers` and `summary` then share the work
        of a generated kernel among the lines, layers and operators that it computes.
    graph_annotations : path, optional
        Annotations of the nodes of CUDA graphs that the trace does not contain: a pickle or JSON of
        `dict(torch.cuda._graph_annotations.get_kernel_annotations())`.

    Returns
    -------
    Profile
        One row per kernel, copy and memset, in order of start, and one per CUDA graph that was
        traced as one unit.

    Raises
    ------
    BadInputError
        The file is missing, damaged, or has an unknown format. With `graph_capture`: no capture
        matches at least 95 % of the kernels of a graph by name and order. With `compiled`: a folder
        has no artefacts.
    """
    return open_trace(
        path,
        progress,
        copies=copies,
        mine=mine,
        graph_capture=graph_capture,
        compiled=compiled,
        graph_annotations=graph_annotations,
    )


def open_trace(
    path: Path, progress: Progress | None = None, **options: Unpack[LoadOptions]
) -> Profile:
    """`open` with all options of `fastprof.profile.load.load`."""
    return load(Profile, path, progress, **options)


def open_dict_lines(stream: BinaryIO, name: str, mine: str | Sequence[str] = ()) -> Profile:
    """The Profile of a stream of dict lines; see `fastprof.profile.load.load_dict_lines`."""
    return load_dict_lines(Profile, stream, name, mine)
