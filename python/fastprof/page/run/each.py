"""The page of each rank of a run, beside the page of the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from fastprof.model.page import Page
from fastprof.page import page_of
from fastprof.page.section import Link, open_for_page
from fastprof.profile.data import ProfileData
from fastprof.profile.load import load
from fastprof.ranks.run.result import RunData


def write_pages(
    run: RunData,
    page: str | os.PathLike[str],
    *,
    graph_capture: Sequence[str | os.PathLike[str]] = (),
    progress: Callable[[str], None] | None = None,
) -> dict[int, str]:
    """Write a page for each file of a run into a directory, NAME_ranks beside NAME.html.

    One trace is in memory at a time.

    Parameters
    ----------
    page : path of the page of the run, to which they link
    graph_capture : see `fastprof.open`
    progress : called with the path of each page that is written

    Returns
    -------
    dict of int to str
        The path of the page of each rank, relative to that of the run, as for `page_of_run`; ranks
        of one file have one page.

    Raises
    ------
    BadInputError
        A trace has changed, or cannot be read any more.
    OSError
        A page cannot be written.
    """
    of_run = Path(page)
    folder = of_run.parent / f"{of_run.stem}_ranks"
    folder.mkdir(parents=True, exist_ok=True)
    back = Link(f"all {len(run)} ranks", f"../{of_run.name}")
    names: dict[str, str] = {}
    result = {}
    for number, record in zip(run.numbers, run.records, strict=True):
        if record.path not in names:
            names[record.path] = f"rank{number}.html"
            _page(record.path, graph_capture, back).save(folder / names[record.path])
            if progress is not None:
                progress(os.fspath(folder / names[record.path]))
        result[number] = f"{folder.name}/{names[record.path]}"
    return result


def _page(path: str, graph_capture: Sequence[str | os.PathLike[str]], back: Link) -> Page:
    def opened(path: str, progress: object, host: bool) -> ProfileData:
        return load(ProfileData, path, copies=True, graph_capture=graph_capture, host=host)

    return page_of(open_for_page(path, opened), links=[back])
