"""Every kernel, copy, call and range of a real rocpd database is that of plain SQL."""

from collections import Counter

import pytest

from fastprof.model.trace import COPY_KINDS
from fastprof.readers.rocpd import reader, schema
from fastprof.readers.sqlite.database import Database
from oracle import rocpd
from real import open_traces
from real.open_traces import kept
from support.real_data import real, traces

PATHS = traces("rocpd/*.db")


@kept
def contents(path: str) -> rocpd.Contents:
    return rocpd.read(real(path))


@kept
def recording(path: str):
    with Database(real(path)) as database:
        return reader.read(database, copies=True, host=True)


@pytest.mark.parametrize("path", PATHS)
def test_kernels_and_copies(path):
    got, expected = recording(path), contents(path)
    kernels, configs = got.kernels, got.kernels.configs
    rows = Counter()
    for i in range(len(kernels)):
        config = kernels.config[i]
        launch, name = kernels.launch[i], configs.name[config]
        size = int(kernels.copied[i]) if configs.kind[config] else 0
        rows[
            int(kernels.start[i]),
            int(kernels.duration[i]),
            got.strings[name] if name >= 0 else COPY_KINDS[configs.copy_kind[config]],
            int(got.processes[kernels.process[i]]),
            int(configs.stream[config]),
            int(kernels.correlation[i]),
            max(size, 0),
            None
            if launch < 0
            else (
                int(got.launches.start[launch]),
                got.strings[got.launches.name[launch]],
                int(got.threads[got.launches.thread[launch]]),
            ),
        ] += 1
    assert rows == Counter(
        (work.start, work.end - work.start, name, work.pid, work.stream, work.stack, work.size,
         work.launch)
        for works in (expected.kernels, expected.copies)
        for work in works
        for name in [direction(work.name) if works is expected.copies else work.name]
    )  # fmt: skip
    assert len(rows) > 1000


def direction(name):
    words = name.removeprefix("MEMORY_COPY_").split("_TO_")
    return f"{words[0][0]}to{words[1][0]}"


@pytest.mark.parametrize("path", PATHS)
def test_grids_count_blocks(path):
    got, expected = recording(path), contents(path)
    configs = got.kernels.configs
    is_kernel = configs.kind == 0
    threads = {tuple(row) for row in (configs.grid * configs.block)[is_kernel].tolist()}
    assert threads == {kernel.grid for kernel in expected.kernels}


@pytest.mark.parametrize("path", PATHS)
def test_calls_and_ranges(path):
    host = recording(path).host
    threads, calls = host.threads, host.calls
    got = Counter(
        zip(calls.start.tolist(), calls.end.tolist(), [host.strings[i] for i in calls.name],
            threads[calls.thread].tolist(), calls.correlation.tolist(), strict=True)
    )  # fmt: skip
    assert got == Counter(
        (call.start, call.end, call.name, call.tid, call.stack) for call in contents(path).calls
    )
    assert len(host.ranges) == len(contents(path).ranges)
    assert sum(got.values()) > 1000


@pytest.mark.parametrize("path", PATHS)
def test_all_rows_are_read_from_pages(path):
    """No table needs SQLite, which would be slower."""
    profile = open_traces.profile(path, copies=True)
    assert set(profile.about.read_by.values()) == {""}
    with Database(real(path)) as database:
        (run,) = schema.runs_of(database.tables)
    assert run.table(schema.DISPATCHES) in profile.about.read_by


@pytest.mark.parametrize("path", PATHS)
def test_totals_of_reports(path):
    profile, expected = open_traces.profile(path, copies=True), contents(path)
    table = profile.report("summary", by=["kernel"])
    rows = table.rows()
    total = sum(each.end - each.start for each in (*expected.kernels, *expected.copies))
    assert sum(row["gpu_ns"] for row in rows) == total
    assert set(profile.column("device").array().tolist()) == {0}
