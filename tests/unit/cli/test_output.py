"""Output files are complete or absent, and occupy little page cache."""

import os

import pytest

from fastprof.cli import output as output_module
from fastprof.cli.output import output

STEP = 1 << 12


@pytest.fixture
def advised(monkeypatch):
    """Use small steps; returns the (offset, length) pairs advised to drop, in order."""
    calls = []
    for name, value in (("_KEPT", 2 * STEP), ("_STEP", STEP), ("_LAG", 2 * STEP)):
        monkeypatch.setattr(output_module, name, value)
    advise = lambda fd, offset, length, advice: calls.append((offset, length))  # noqa: E731
    monkeypatch.setattr(os, "posix_fadvise", advise, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    return calls


@pytest.mark.parametrize("block", [1, 100, STEP, 3 * STEP + 7])
def test_what_is_written_arrives_whatever_the_size_of_the_blocks(block, advised, tmp_path):
    data = os.urandom(10 * STEP + 5)
    with output(str(tmp_path / "report")) as file:
        for at in range(0, len(data), block):
            file.write(data[at : at + block])
    assert (tmp_path / "report").read_bytes() == data


def test_each_step_behind_the_first_bytes_is_written_to_disk_then_dropped(advised, tmp_path):
    with output(str(tmp_path / "report")) as file:
        for _ in range(7 * STEP // 64):
            file.write(b"x" * 64)
    # The start of the file is never dropped; a step is advised when full and again two steps later.
    assert [offset // STEP for offset, _ in advised] == [2, 3, 4, 2, 5, 3, 6, 4]
    assert {length for _, length in advised} == {STEP}


def test_small_file_is_kept_in_memory(advised, tmp_path):
    with output(str(tmp_path / "report")) as file:
        file.write(b"x" * (2 * STEP))
    assert advised == []


def test_file_system_that_takes_no_advice_does_not_matter(advised, monkeypatch, tmp_path):
    def refuse(*arguments):
        raise OSError("no advice here")

    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    with output(str(tmp_path / "report")) as file:
        file.write(b"x" * (9 * STEP))
    assert (tmp_path / "report").stat().st_size == 9 * STEP
