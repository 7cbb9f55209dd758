"""The page of a run: `report.html` in its directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastprof._system.output_file import output_file
from fastprof.api.batch import batch
from fastprof.api.profile import Profile
from fastprof.model.page import Page
from fastprof.page import page_of
from fastprof.page.ranks import page_of_ranks
from fastprof.runs.directory import PAGE


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
