"""A path, or a stream of dict lines, to the Profile of what is in it."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from typing import BinaryIO

from fastprof._core._take import take
from fastprof._system import memory
from fastprof.errors import BadInputError
from fastprof.model.markers import Meaning, SourceLines
from fastprof.model.trace import Trace
from fastprof.ops.user import load_packages
from fastprof.profile import captured_graphs, checks
from fastprof.profile.callpath.attribution import attribute
from fastprof.profile.counts import steps_of
from fastprof.profile.from_dict_lines import from_dict_lines
from fastprof.profile.from_trace import assemble
from fastprof.profile.profile import Profile
from fastprof.profile.recount import recount
from fastprof.readers import dict_lines, memory_estimate
from fastprof.readers.detect import head_of, read_trace
from fastprof.readers.sqlite.database import Progress

Path = str | os.PathLike[str]

_TRACES = (".json", ".json.gz", ".sqlite")  # what of a directory is read as captures of graphs


def open(
    path: Path,
    progress: Progress | None = None,
    *,
    copies: bool = False,
    mine: str | Sequence[str] = (),
    graph_capture: Path | Sequence[Path] = (),
) -> Profile:
    """Read a capture and find out what every kernel of it was for.

    Parameters
    ----------
    path : path of a trace or of dict lines
        An Nsight Systems SQLite export, a report of Nsight Systems (with `nsys` on the PATH), an
        NVProf file, a trace of torch.profiler, or what `fastprof parse` or PyProf wrote. It is
        only read. A pipe can hold dict lines only.
    progress : function, optional
        Called now and then with what is being read, the rows so far and about how many there are.
    copies : bool
        Whether memory copies and memsets get rows as kernels do. Dict lines have none.
    mine : str or sequence of str
        Globs of the source files and folders that are your own, for the column `line`; each is
        compared with the end of a path. Without any, a file is yours that neither an installed
        package nor the interpreter brings along.
    graph_capture : path or list of paths, optional
        Traces that were recorded while CUDA or HIP graphs were captured, or directories of these
        (.json, .json.gz, .sqlite). Kernels of the launches of these graphs in `path` take
        operator, arguments, layer and line from there; `Profile.graph_capture` says how many. What
        the trace itself has captured is used without this.

    Returns
    -------
    Profile
        One row a kernel, in order of start; one more for each CUDA graph that was captured as a
        whole.

    Raises
    ------
    BadInputError
        The file is missing, damaged, or not a trace that fastprof knows. Or less than 95 % of the
        kernels of each graph that it launches agree with a capture by name and order.
    """
    given = [graph_capture] if isinstance(graph_capture, str | os.PathLike) else graph_capture
    return _with_packages(lambda: _open(path, progress, copies, SourceLines(mine), given))


def read_dict_lines(stream: BinaryIO, name: str, *, mine: str | Sequence[str] = ()) -> Profile:
    """The Profile of dict lines that come from a stream; `name` is what messages call it.

    mine : as of `open`

    Raises
    ------
    BadInputError
        A line is no dict line.
    """
    lines = SourceLines(mine)
    return _with_packages(lambda: from_dict_lines(name, dict_lines.read(stream, name), lines))


def _with_packages(make: Callable[[], Profile]) -> Profile:
    """The Profile, made with the costs that installed packages offer; what was wrong is told."""
    problems = load_packages()
    profile = make()
    profile.warnings += problems
    return profile


def _open(
    path: Path,
    progress: Progress | None,
    copies: bool,
    lines: SourceLines,
    graph_capture: Sequence[Path],
) -> Profile:
    if not graph_capture:
        return _open_alone(path, progress, copies, lines)
    name = os.fsdecode(path)
    if not os.path.isfile(path) or dict_lines.looks_like_dict_lines(head_of(path)):
        raise BadInputError(
            f"{name}: expected a trace that launches CUDA or HIP graphs, found dict lines or a "
            "pipe; give the capture to fastprof parse, with the trace that these lines came from"
        )
    files = traces_in(graph_capture)
    trace = read_trace(path, progress, copies)
    captured_graphs.take_captures(trace, (read_trace(file, progress, True, True) for file in files))
    return _recountable(_profile(trace, lines, True), path, copies)


def traces_in(paths: Sequence[Path]) -> list[Path]:
    """Files, and the traces in directories, by their names.

    Raises
    ------
    BadInputError
        There is none in a directory.
    """
    return [file for path in paths for file in _traces_of(path)]


def _traces_of(path: Path) -> list[Path]:
    """The traces in a directory, by their names; of a file itself."""
    if not os.path.isdir(path):
        return [path]
    names = sorted(os.listdir(os.fsdecode(path)))
    found: list[Path] = [
        os.path.join(os.fsdecode(path), name) for name in names if name.endswith(_TRACES)
    ]
    if not found:
        raise BadInputError(
            f"{os.fsdecode(path)}: expected traces of the capture of CUDA or HIP graphs (names "
            f"that end in {', '.join(_TRACES)}), found {len(names)} other files; check the path"
        )
    return found


def _open_alone(path: Path, progress: Progress | None, copies: bool, lines: SourceLines) -> Profile:
    name = os.fsdecode(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        with builtins.open(path, "rb", buffering=0) as pipe:
            return from_dict_lines(name, dict_lines.read(pipe, name), lines)
    if dict_lines.looks_like_dict_lines(head_of(path)):
        memory.expect(name, memory_estimate.of_dict_lines(path))
        profile = from_dict_lines(name, dict_lines.read(path, name), lines)
        return _recountable(profile, path, copies)
    return _recountable(_profile(read_trace(path, progress, copies), lines), path, copies)


def _profile(trace: Trace, lines: SourceLines, took_captures: bool = False) -> Profile:
    """The Profile of a trace.

    took_captures : whether its captures of graphs were taken from other files
    """

    def nested(meanings: list[Meaning]) -> None:
        trace.about.steps = steps_of(trace, meanings)
        trace.forget_times()

    attribution = attribute(trace, nested)
    graph_capture = captured_graphs.align(trace, attribution, took_captures)
    checks.tree(
        trace.name,
        attribution.node_parent,
        attribution.node_of_frame,
        attribution.frame_parent,
        take(attribution.node_of_frame, attribution.frame_of_kernel),
    )
    trace.forget_threads()
    attribution.forget_launches()
    profile = assemble(trace, attribution, lines)
    profile.graph_capture = graph_capture
    return profile


def _recountable(profile: Profile, path: Path, copies: bool) -> Profile:
    """The Profile, which can have its file counted again, from whatever directory."""
    # The name and not the profile: a ring of references would keep its memory.
    name, full, state = profile.name, os.path.abspath(path), _state(path)

    def count_again() -> checks.Totals | None:
        if _state(full) != state:
            raise BadInputError(f"{name}: was changed since it was read; read it again")
        return recount(full, copies)

    profile.recount = count_again
    return profile


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes with a file's content; None where there is no file."""
    try:
        told = os.stat(path)
    except OSError:
        return None
    return told.st_ino, told.st_size, told.st_mtime_ns
