"""A generated run as a rocpd database has the attributions that it has as an export of nsys."""

import pytest
from bench import rocpd_schema
from bench.generate import generate

import fastprof

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
def test_all_columns_equal_those_of_nsys(version, expected, tmp_path):
    path = tmp_path / "run.db"
    generate(path, N_KERNELS, n_processes=2, rocpd=version)
    got = rows(path)
    assert len(got) == len(expected)
    for ours, theirs in zip(got[:N_WHOLE], expected[:N_WHOLE], strict=True):
        assert dict(zip(COLUMNS, ours, strict=True)) == dict(zip(COLUMNS, theirs, strict=True))
