"""Runs of bench.ranks, simulated and read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.ranks import programs, truth

from fastprof.profile.data import ProfileData
from fastprof.profile.load import load
from fastprof.ranks.files import source_of
from fastprof.ranks.run.record import RecordedFile
from fastprof.ranks.run.result import RunData
from fastprof.ranks.run.timeline import records_of


def simulated(
    folder: Path, program: str = "fsdp", ranks: int = 4, steps: int = 3, faults: Sequence[Any] = ()
) -> list[Path]:
    """The files of a run that are written to a folder."""
    truth.write(folder, programs.PROGRAMS[program](ranks), steps, 1, list(faults))
    return sorted(folder.glob("rank*.json.gz"))


def read_run(paths: Sequence[Path]) -> RunData:
    """The run of some files."""
    return RunData([_recorded(str(path)) for path in paths])


def _recorded(path: str) -> RecordedFile:
    source = source_of(path)
    profile = load(ProfileData, path, copies=True, graph_capture=())
    return RecordedFile(source, records_of(profile, source))
