"""A generated run as a rocpd database has the attributions that it has as an export of nsys."""

import numpy as np
import pytest
from bench import rocpd_schema
from bench.generate import generate

import fastprof
from fastprof.readers.rocpd import reader as rocpd_reader
from fastprof.readers.rocpd import schema as rocpd
from fastprof.readers.sqlite import connected
from fastprof.readers.sqlite.database import Database

# Of the last step, rocprofv3 loses the ranges that are open when the recording ends.
N_KERNELS, N_WHOLE = 900, 800
# Everything but the names of calls, which are those of HIP.
COLUMNS = (
    *("start", "end", "sil", "kernel", "name", "device", "stream", "grid", "block", "registers"),
    *("seq", "altseq", "dir", "layer", "trace", "mod", "op", "params", "flops", "bytes", "tid"),
    *("pid", "correlation", "launch_start", "copied", "copy_direction", "shared_memory"),
)


def rows(path):
    profile = fastprof.open(path)
    columns = [profile.column(name) for name in COLUMNS]
    return [tuple(column.at(i) for column in columns) for i in range(len(profile))]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("nsys") / "run.sqlite"
    generate(path, N_KERNELS, n_processes=2)
    return rows(path)


@pytest.mark.parametrize("version", rocpd_schema.VERSIONS)
def test_pieces_on_two_threads_give_the_same(version, tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    generate(path, N_KERNELS, n_processes=2, rocpd=version)
    with Database(path) as database:
        whole = rocpd_reader.read(database, copies=True, host=True)
    monkeypatch.setattr(connected, "_FEW_ROWS", 0)
    with Database(path) as database:
        (run,) = rocpd.runs_of(database.tables)
        assert len(database.pieces(run.table(rocpd.EVENTS), 16)) == 16
        pieces = rocpd_reader.read(database, copies=True, host=True)
    assert pieces.labels == whole.labels
    for got, expected in (
        (pieces.ranges, whole.ranges),
        (pieces.launches, whole.launches),
        (pieces.host.calls, whole.host.calls),
        (pieces.kernels, whole.kernels),
    ):
        for name, values in vars(expected).items():
            if isinstance(values, np.ndarray) and name != "config":
                assert np.array_equal(getattr(got, name), values), name


@pytest.mark.parametrize("version", rocpd_schema.VERSIONS)
def test_all_columns_equal_those_of_nsys(version, expected, tmp_path):
    path = tmp_path / "run.db"
    generate(path, N_KERNELS, n_processes=2, rocpd=version)
    got = rows(path)
    assert len(got) == len(expected)
    for ours, theirs in zip(got[:N_WHOLE], expected[:N_WHOLE], strict=True):
        of_amd = [of_hip(value) for value in theirs]
        assert dict(zip(COLUMNS, ours, strict=True)) == dict(zip(COLUMNS, of_amd, strict=True))


def of_hip(value):
    """The name of a copy or memset as in AMD's recordings; other values as they are."""
    return value.replace("[CUDA", "[HIP") if isinstance(value, str) else value
