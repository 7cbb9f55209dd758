"""Output files are complete or absent, and occupy little page cache; the bar of what is read."""

import io
import os
import re
import sys

import pytest
import tqdm
from bench.generate import generate

import fastprof
from fastprof.cli import output as output_module
from fastprof.cli.output import Bar, output

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


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self):
        return True


def terminal_for(monkeypatch):
    """stderr as a terminal, with bars that appear at once; for the body of a test."""
    whole = tqdm.tqdm
    monkeypatch.setattr(
        tqdm, "tqdm", lambda **how: whole(**{**how, "delay": 0, "mininterval": 0, "ncols": 80})
    )
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    return made


def shown(terminal):
    """The states of the bar: percent, rows and total."""
    state = r"reading: +(\d+)%\|.*?\| ([\d.]+k?)/([\d.]+k?) \[\d\d:\d\d<"
    return re.findall(state, terminal.getvalue())


def test_one_bar_has_the_rows_of_all_tables_and_the_time_left(monkeypatch):
    terminal = terminal_for(monkeypatch)
    with Bar() as bar:
        bar("kernels", 0, 100)
        bar("ranges", 0, 300)
        bar("kernels", 100, 100)
        bar("ranges", 100, 300)
    assert shown(terminal)[-2:] == [("25", "100", "400"), ("50", "200", "400")]
    assert terminal.getvalue().endswith("\r")  # it leaves nothing behind


def test_the_bar_of_the_next_file_begins_anew(monkeypatch):
    terminal = terminal_for(monkeypatch)
    with Bar() as bar:
        bar("kernels", 90, 100)
        bar("kernels", 10, 1000)
    assert shown(terminal)[-1] == ("1", "10.0", "1.00k")


def test_reading_an_export_announces_all_large_tables(tmp_path):
    told = []
    generate(tmp_path / "x.sqlite", 1000, 1)
    fastprof.open(tmp_path / "x.sqlite", lambda *each: told.append(each))
    first = {what: total for what, rows, total in told[:3] if not rows}
    assert len(first) == 3 and all(total > 0 for total in first.values())


def test_work_of_unknown_length_is_named_once(monkeypatch):
    terminal = terminal_for(monkeypatch)
    with Bar() as bar:
        bar("nsys export", 0, 0)
        bar("nsys export", 5000, 0)
    assert terminal.getvalue() == "fastprof: nsys export ...\n"
