"""What the program's processes have written, under its final names, and the page of a run."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from fastprof._system.output_file import output_file
from fastprof._system.threads import map_on_threads, usable_cores
from fastprof.api.batch import batch
from fastprof.api.profile import Profile
from fastprof.model.metadata import AFTER
from fastprof.model.page import Page
from fastprof.page import page_of
from fastprof.page.ranks import page_of_ranks
from fastprof.readers.beside import COMPILED
from fastprof.runs.directory import PAGE
from fastprof.runs.facts import NOW, STATUS, snapshot_of
from fastprof.runs.rocprof import name_traces

_COMPRESSION = 4
_PIECE = 1 << 20  # bytes
_END = 256  # bytes at the end of a trace that hold its last brace
# Reports, requests, and what killed processes leave of a trace.
_LEFT = (f"{STATUS}-*.json", NOW, ".trace-*.json", ".trace-*.json.tmp")


def collect(directory: Path) -> list[dict[str, Any]]:
    """The reports of the processes, by rank; the traces are renamed and compressed.

    A report has `pid`, `arguments`, `rank`, `world`, `steps`, `by`, `versions`, `problem`,
    `step_lengths` and `most` (see `Watch.facts`), and `recordings`, each with `path`, `first`,
    `n_steps`, `has_begun`, `is_stopped`, `cause` (see `Watch`), and `unrecorded` and `after`, the
    steps before it and after it: see `UnrecordedSteps.facts`. The latter is added to the trace.
    """
    reports = []
    for path in directory.glob(f"{STATUS}-*.json"):
        with suppress(OSError, ValueError):  # killed while it wrote
            reports.append(json.loads(path.read_text(encoding="utf-8", errors="surrogateescape")))
    for pattern in _LEFT:
        for path in directory.glob(pattern):
            with suppress(OSError):
                path.unlink()
    reports.sort(key=lambda each: (each["rank"], each["pid"]))
    taken: Counter[str] = Counter()
    moves = []
    for report in reports:
        for recording in report["recordings"]:
            if recording["path"]:
                stem = f"trace.rank{report['rank']}" if report["world"] > 1 else "trace"
                taken[stem] += 1
                number = f"-{taken[stem]}" if taken[stem] > 1 else ""
                final = directory / f"{stem.replace('trace', f'trace{number}', 1)}.json.gz"
                moves.append((Path(recording["path"]), final, recording.get("after")))
                with suppress(OSError):  # there is none
                    os.replace(snapshot_of(Path(recording["path"])), snapshot_of(final))
                recording["path"] = final.name
    name_traces(directory, reports)
    map_on_threads(_compress, moves, usable_cores())
    _trim_logs(directory / COMPILED)
    return reports


def _trim_logs(folder: Path) -> None:
    """Keep only the records that reports use: a structured log has many others."""
    if not folder.is_dir():
        return
    from fastprof.readers.inductor.structured_log import is_structured_log, kept_lines

    for path in [path for path in folder.iterdir() if is_structured_log(path.name)]:
        with suppress(OSError), output_file(path, is_own=True) as file:
            for line in kept_lines(path):
                file.write(line)


def _compress(move: tuple[Path, Path, dict[str, Any] | None]) -> None:
    """Compress a trace, with the steps after it; without space for that, keep it as it is."""
    plain, packed, after = move
    added = b"" if after is None else f', "{AFTER}": {json.dumps(after)}'.encode()
    try:
        with (
            output_file(packed, is_own=True, sync=True) as out,
            open(plain, "rb") as text,
            gzip.GzipFile("", "wb", _COMPRESSION, out, 0) as file,
        ):
            _copy(text, file, added)
        plain.unlink()
    except OSError:
        with suppress(OSError):
            os.replace(plain, packed.with_suffix(""))


def _copy(text: BinaryIO, file: gzip.GzipFile, added: bytes) -> None:
    """Copy the text of a JSON object, with what is added before its last brace."""
    size = text.seek(0, os.SEEK_END)
    text.seek(max(0, size - _END))
    end = text.read()
    brace = end.rfind(b"}")
    n_left = size if brace < 0 else size - len(end) + brace
    text.seek(0)
    while n_left and (piece := text.read(min(n_left, _PIECE))):
        file.write(piece)
        n_left -= len(piece)
    if brace >= 0:
        file.write(added + end[brace:])


def write_page(directory: Path, traces: Sequence[Path], profile: Profile) -> Path:
    """Write the page of a run and return its path.

    Parameters
    ----------
    directory : of the run
    traces : all its traces; several are ranks, which the page compares
    profile : of the first trace

    Raises
    ------
    FastprofError
        A trace cannot be read.
    OSError
        The page cannot be written.
    """
    page: Page = page_of(profile) if len(traces) == 1 else page_of_ranks(batch(traces, copies=True))
    path = directory / PAGE
    with output_file(path, is_own=True) as file:
        file.write(page.html.encode())
    return path
