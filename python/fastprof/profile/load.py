"""A trace file, or a stream of dict lines, to the data of a profile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from threading import Lock
from typing import Any, BinaryIO, TypedDict, TypeVar

from fastprof._core._take import take
from fastprof._system import memory
from fastprof._system.file_state import SameFile
from fastprof._system.garbage import uncollected
from fastprof.errors import BadInputError
from fastprof.model.compiled import Compiled
from fastprof.model.markers import SourceLines
from fastprof.model.timeline import KeptHost, Recorded, RecordedEvents
from fastprof.model.trace import Recording, Trace
from fastprof.ops.user import load_packages
from fastprof.profile import checks
from fastprof.profile.callpath.attribution import Attribution, attribute
from fastprof.profile.callpath.nesting import nest
from fastprof.profile.data import ProfileData
from fastprof.profile.from_trace import TraceSource
from fastprof.profile.source import ProfileSource
from fastprof.profile.timeline import (
    DiffersError,
    KeptTimes,
    RangeTimes,
    Timeline,
    timeline_of,
    timeline_of_kept,
)
from fastprof.readers import detect as memory_estimate
from fastprof.readers.beside import compiled_beside
from fastprof.readers.detect import (
    FileFormat,
    detect_trace,
    read_counters,
    read_gpu_samples,
    read_host_events,
    read_timeline,
    read_trace,
)
from fastprof.readers.sqlite.database import Progress

Path = str | os.PathLike[str]

_TRACE_SUFFIXES = (".json", ".json.gz", ".sqlite")  # of graph captures in a directory


Data = TypeVar("Data", bound=ProfileData)
Result = TypeVar("Result")


class LoadOptions(TypedDict, total=False):
    """The options of `load`."""

    copies: bool
    mine: str | Sequence[str]
    graph_capture: Path | Sequence[Path]
    host: bool
    compiled: Path | Sequence[Path]
    graph_annotations: Path | None


def load(
    kind: type[Data],
    path: Path,
    progress: Progress | None = None,
    *,
    copies: bool = True,
    mine: str | Sequence[str] = (),
    graph_capture: Path | Sequence[Path] = (),
    host: bool = False,
    compiled: Path | Sequence[Path] = (),
    graph_annotations: Path | None = None,
) -> Data:
    """Read a trace and attribute its kernels; see `fastprof.open` for parameters and errors.

    kind : the class of the profile, that of users or of what reports need
    host : keep the times of `ranges` and `api` while an export of Nsight Systems is read, which
        would be read again on first use. They take about 40 bytes for each API call and 20 for each
        range. Those of torch.profiler are always kept.
    """
    files = [graph_capture] if isinstance(graph_capture, str | os.PathLike) else graph_capture
    folders = [compiled] if isinstance(compiled, str | os.PathLike) else compiled
    artefacts = _artefacts(folders) if folders else _artefacts_beside(path)
    profile = _with_packages(
        lambda: _load(
            kind, path, progress, copies, SourceLines(mine), files, host, graph_annotations
        )
    )
    profile.source.compiled = artefacts
    return profile


def _artefacts_beside(path: Path) -> Compiled | None:
    """Those that `fastprof run` kept with the trace; None without any that can be read."""
    with suppress(BadInputError):
        beside = compiled_beside(path)
        return _artefacts(beside) if beside else None
    return None


def _artefacts(folders: Sequence[Path]) -> Compiled:
    """What the artefacts of torch.compile in some folders tell."""
    from fastprof.readers.inductor import folder

    results = [folder.read(path) for path in folders]
    return Compiled(
        tuple(graph for result in results for graph in result.graphs),
        tuple(again for result in results for again in result.recompilations),
        tuple(end for result in results for end in result.breaks),
    )


def load_dict_lines(
    kind: type[Data], stream: BinaryIO, name: str, mine: str | Sequence[str] = ()
) -> Data:
    """Read a stream of dict lines.

    kind : see `load`
    name : name of the stream in messages
    mine : see `fastprof.open`

    Raises
    ------
    BadInputError
        A line is not a dict line.
    """
    lines = SourceLines(mine)
    return _with_packages(lambda: kind(_source_of_lines(stream, name, lines)))


def _source_of_lines(stream: Path | BinaryIO, name: str, lines: SourceLines) -> ProfileSource:
    from fastprof.profile.from_dict_lines import DictLineSource
    from fastprof.readers import dict_lines

    return DictLineSource(name, dict_lines.read(stream, name), lines)


def _with_packages(make: Callable[[], Data]) -> Data:
    """Load with the operator costs of installed packages, and add their warnings."""
    with uncollected():
        problems = load_packages()
        profile = make()
    profile.warnings += problems
    return profile


def _load(
    kind: type[Data],
    path: Path,
    progress: Progress | None,
    copies: bool,
    lines: SourceLines,
    graph_capture: Sequence[Path],
    host: bool,
    notes: Path | None,
) -> Data:
    name = os.fsdecode(path)
    is_pipe = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    if is_pipe or detect_trace(path).format is FileFormat.DICT_LINES:
        if graph_capture:
            raise BadInputError(
                f"{name}: expected a trace that launches CUDA or HIP graphs, found dict lines or "
                "a pipe; pass --graph-capture to fastprof parse, with the trace of these lines"
            )
        if is_pipe:
            with open(path, "rb", buffering=0) as pipe:
                return kind(_source_of_lines(pipe, name, lines))
        memory.require(name, memory_estimate.memory_of_dict_lines(path))
        source_of_lines = _source_of_lines(path, name, lines)
        return kind(source_of_lines, _recounter(SameFile(path, name), copies))
    # Each stage's input is released when the stage returns: no local variable refers to it.
    kept: list[KeptTimes | Recorded] = []
    attributed = attribute(
        nest(_read(path, progress, copies, graph_capture, host, notes, kept.append))
    )
    trace = attributed.trace
    attribution, summary = attributed.attribution, None
    if trace.captured is not None:
        from fastprof.profile import captured_graphs

        attribution, summary = captured_graphs.align(attributed, bool(graph_capture))
    del attributed
    trace.keep_labels_of_phases()
    checks.tree(
        trace.name,
        attribution.node_parent,
        attribution.node_of_frame,
        attribution.frame_parent,
        take(attribution.node_of_frame, attribution.frame_of_kernel),
    )
    file = SameFile(path, name)
    readers = (
        _reader_of_times(file, *kept),
        _reader_of_events(file, *kept),
        cache(partial(_again, file, read_gpu_samples)),
        partial(_again, file, read_counters, copies),
    )
    source = TraceSource(trace, attribution, lines, *readers)
    return kind(source, _recounter(file, copies), summary)


def _read(
    path: Path,
    progress: Progress | None,
    copies: bool,
    graph_capture: Sequence[Path],
    host: bool,
    notes: Path | None,
    keep: Callable[[KeptTimes | Recorded], None],
) -> Recording:
    files = traces_in(graph_capture)
    recording = read_trace(path, progress, copies, host=host and not files)
    if isinstance(recording.host, Recorded):
        keep(recording.host)
    elif isinstance(recording.host, KeptHost):
        ranges = recording.ranges
        keep(KeptTimes(recording.host, RangeTimes(ranges.start, ranges.end, ranges.thread)))
    if files:
        from fastprof.profile import captured_graphs

        captured_graphs.use_captures(
            recording, (read_trace(file, progress, copies=True, captures=True) for file in files)
        )
    if notes is not None:
        from fastprof.readers import graph_annotations

        graph_annotations.annotate(recording, graph_annotations.read(notes))
    return recording


def traces_in(paths: Sequence[Path]) -> list[Path]:
    """The files among `paths`, and the traces in the directories, sorted by name.

    Raises
    ------
    BadInputError
        A directory contains no trace.
    """
    return [file for path in paths for file in _traces_of(path)]


def _traces_of(path: Path) -> list[Path]:
    if not os.path.isdir(path):
        return [path]
    names = sorted(os.listdir(os.fsdecode(path)))
    traces: list[Path] = [
        os.path.join(os.fsdecode(path), name) for name in names if name.endswith(_TRACE_SUFFIXES)
    ]
    if not traces:
        raise BadInputError(
            f"{os.fsdecode(path)}: expected traces with captures of CUDA or HIP graphs (names "
            f"ending in {', '.join(_TRACE_SUFFIXES)}), found {len(names)} other files; check the "
            "path"
        )
    return traces


def _recounter(file: SameFile, copies: bool) -> Callable[[], checks.Totals | None]:
    """A function that counts the file again."""

    def recount_file() -> checks.Totals | None:
        from fastprof.profile.recount import recount

        file.check()
        return recount(file.path, copies)

    return recount_file


def _reader_of_times(
    file: SameFile, kept: KeptTimes | Recorded | None = None
) -> Callable[[Trace, Attribution], Timeline]:
    """A function that returns the times of ranges and API calls: kept ones, or from the file."""
    results: list[Timeline] = []  # of the trace and of its parts, which are sources of their own
    lock = Lock()  # `_timeline` sorts what is kept in place

    def read(trace: Trace, attribution: Attribution) -> Timeline:
        with lock:
            if not results:
                results.append(_timeline(file, kept, trace, attribution))
            return results[0]

    return read


def _reader_of_events(
    file: SameFile, kept: KeptTimes | Recorded | None = None
) -> Callable[[str], RecordedEvents | None]:
    """A function that returns events of the host by name: kept ones, or from the file."""

    def read(name: str) -> RecordedEvents | None:
        if name == "payloads" and isinstance(kept, KeptTimes):
            return kept.host.payloads
        return _again(file, read_host_events, name)

    return read


def _timeline(
    file: SameFile, kept: KeptTimes | Recorded | None, trace: Trace, attribution: Attribution
) -> Timeline:
    if isinstance(kept, KeptTimes):
        again = cache(partial(_timeline, file, None, trace, attribution))
        return timeline_of_kept(trace, attribution, kept, again)
    try:
        return timeline_of(
            trace, attribution, _again(file, read_timeline) if kept is None else kept
        )
    except DiffersError:
        raise file.changed() from None


def _again(file: SameFile, function: Callable[..., Result], *arguments: Any) -> Result:
    """function(path, *arguments) of the file, which must not change before and meanwhile."""
    file.check()
    result = function(file.path, *arguments)
    file.check()
    return result
