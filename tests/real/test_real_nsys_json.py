"""Real exports of nsys, written as its JSON, read as they are."""

import pytest

import fastprof
from support import nsys_json
from support.real_data import real, traces

TRACES = traces("nsys/*.sqlite")
_OF_THE_GPU = "tc_reason"  # needs the GPU's name, which JSON lacks


@pytest.mark.parametrize("path", TRACES)
def test_json_reads_as_the_sqlite_export(path, tmp_path, monkeypatch):
    monkeypatch.setenv("FASTPROF_CACHE", str(tmp_path / "cache"))
    export = real(path)
    expected = fastprof.open(export, copies=True)
    if not len(expected.ranges) and not len(expected):
        pytest.skip("an export without events that the writer of tests knows")
    profile = fastprof.open(nsys_json.write(export, tmp_path / "net.json"), copies=True)
    ours, theirs = (each.to_pandas().drop(columns=_OF_THE_GPU) for each in (profile, expected))
    assert ours.equals(theirs)
    assert profile.ranges.to_pandas().equals(expected.ranges.to_pandas())
    assert profile.api.to_pandas().equals(expected.api.to_pandas())
    assert profile.about.threads == expected.about.threads
