"""A fixed part of the mutants of `make fuzz`, and checks that the engine detects errors."""

import os
import re
import signal
import sys
import time
import warnings
from pathlib import Path

import pytest

from fuzz import check, of_databases
from fuzz.corpus import FORMATS, KINETO, NSYS, corpus
from fuzz.mutant import KINDS, Mutant, mutants, shapes
from fuzz.worker import outcomes
from support.hypothesis_profiles import IS_FULL
from support.waiting import PATIENCE

N_MUTANTS = 600  # more than there are ways to make one of a seed


@pytest.fixture(scope="module")
def seeds():
    return corpus(real=False)


def wrong(done):
    return {str(each.mutant): each.detail for each in done if each.what == "wrong"}


def test_mutants_end_in_rows_or_in_one_line(seeds):
    """All of the list; in the fast profile, one of every other kind of each format."""
    chosen = mutants(seeds, N_MUTANTS, seed=0)
    if not IS_FULL:
        chosen = list({(seeds[each.seed].format, each.kind): each for each in chosen}.values())
        assert len(chosen) == sum(map(len, KINDS.values()))
        chosen = chosen[::2]
        assert {seeds[each.seed].format for each in chosen} == set(FORMATS)
    done = list(outcomes(chosen, seeds, seconds=PATIENCE))
    assert wrong(done) == {}
    assert len(done) == len(chosen)
    assert {each.what for each in done} == {"rows", "refused"}


def test_files_that_are_large_in_one_way_end_in_rows_or_in_one_line(seeds):
    done = {
        outcome.mutant.kind: outcome for outcome in outcomes(shapes(0.02), seeds, seconds=PATIENCE)
    }
    assert wrong(done.values()) == {}
    refused = {kind for kind, each in done.items() if each.what == "refused"}
    assert refused <= {"crossing"}


def test_each_seed_is_whole(seeds, tmp_path):
    assert {seed.format for seed in seeds.values()} == set(FORMATS)
    path = tmp_path / "in" / "x.trace"
    path.parent.mkdir()
    for seed in seeds.values():
        path.write_bytes(seed.content)
        for number in range(3 if IS_FULL else 1):
            ended = check.check(path, seed.format, number)
            assert (ended.code, ended.stderr.count("\n")) == (0, 1), (seed.name, ended.stderr)
            assert len(ended.rows) > 10, seed.name


# `info` does not read the damaged API calls; times at the limits of 64 bits in a replay.
MENDED = ("nsys-2020/cell-heads/2000001", "kineto/token/2000007")


def test_what_the_fuzzer_showed_stays_mended(seeds):
    assert wrong(outcomes(list(map(Mutant.named, MENDED)), seeds, seconds=PATIENCE)) == {}


def test_seeds_are_cut_from_real_traces(tmp_path, monkeypatch):
    """From those of formats that fastprof reads: others lie beside them."""
    for name in ("nsys/small.sqlite", "rocpd/schema/tables.sql", "rocpd/small.json.gz"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"CREATE TABLE a (b)")
    (tmp_path / "nsys/small.sqlite").write_bytes(corpus(real=False)["nsys-2024"].content)
    monkeypatch.setenv("FASTPROF_DATA", str(tmp_path))
    assert {name for name in corpus() if name.startswith("real-")} == {"real-small"}


def test_a_mutant_is_the_same_whenever_it_is_made(seeds):
    chosen = mutants(seeds, 400, seed=5)
    assert len({str(mutant) for mutant in chosen}) == 400
    for mutant in chosen[:40]:
        again = Mutant.named(str(mutant))
        assert again.content(seeds) == mutant.content(seeds)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_kind_of_mutation_changes_files(format_, seeds):
    seed = next(seed for seed in seeds.values() if seed.format == format_)
    for kind in KINDS[format_]:
        made = {Mutant(seed.name, kind, number).content(seeds) for number in range(6)}
        assert len(made - {seed.content}) > 1, kind


def test_mutations_by_sql_leave_the_file_sound(seeds, tmp_path):
    content = seeds["nsys-2024"].content
    for kind in of_databases.KINDS:
        path = tmp_path / kind
        path.write_bytes(Mutant("nsys-2024", kind, 1).content(seeds))
        if kind not in ("schema", "nulls"):
            assert check._rows_by_sql(path, check.TABLES_OF_ROWS[NSYS]) is not None, kind
    assert content


def refuse(*lines):
    for line in lines:
        print(line, file=sys.stderr)
    return 1


def write(path):
    path.write_bytes(b"x")
    return refuse("fastprof: x.trace: bad")


# Errors of a command, and the text that the engine reports.
WRONG = {
    "ValueError: mistake": lambda path: int("mistake"),
    "2 lines for an error": lambda path: refuse("fastprof: x.trace: a", "b"),
    "does not name the file": lambda path: refuse("fastprof: an index is out of bounds"),
    "memory ran out": lambda path: refuse("fastprof: x.trace: not enough memory"),
    "exit code 3": lambda path: 3,
    "overflow encountered": lambda path: warnings.warn("overflow encountered", stacklevel=1),
    "left behind: out.part": lambda path: write(path.with_name("out.part")),
    "the input is another one": write,
    "an output file of a command that failed": lambda path: write(path.with_name("out")),
    "neither a warning nor a count": lambda path: refuse("Traceback") - 1,
}


@pytest.mark.parametrize("expected", WRONG)
def test_what_a_command_does_wrong_is_seen(expected, tmp_path, monkeypatch):
    path = tmp_path / "in" / "x.trace"
    path.parent.mkdir()
    path.write_bytes(b"{}")
    monkeypatch.setattr(check.cli, "main", lambda words: WRONG[expected](path))
    with pytest.raises(check.WrongError, match=re.escape(expected.split(":")[0])) as result:
        check.check(path, KINETO, 0)
    assert expected in str(result.value)


def test_ways_that_differ_and_rows_that_are_lost_are_seen(seeds, tmp_path, monkeypatch):
    path = tmp_path / "in" / "x.trace"
    path.parent.mkdir()
    path.write_bytes(seeds["nsys-2024"].content)
    command, losing = check.cli.main, []

    def main(words):
        code, out = command(words), Path(words[-1])
        if os.environ.get("FASTPROF_SCAN") in losing:
            out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:-1]))
        return code

    monkeypatch.setattr(check.cli, "main", main)
    losing.append("sqlite")
    with pytest.raises(check.WrongError, match="sqlite and pages differ"):
        check.check(path, NSYS, 2)
    losing += ["", "pages"]
    with pytest.raises(check.WrongError, match="rows, the file has"):
        check.check(path, NSYS, 2)


class Killer(Mutant):
    """A mutant that kills the process that makes it."""

    def content(self, seeds):
        signal.raise_signal(signal.SIGSEGV)  # to this thread: `os.kill` may reach faulthandler's


class Staller(Mutant):
    """A mutant that never finishes."""

    def content(self, seeds):
        time.sleep(3600)


class Wrong(Mutant):
    """A mutant that is wrong at once, however busy the machine is."""

    def content(self, seeds):
        raise check.WrongError("it was tried")


def test_what_kills_or_stalls_a_worker_is_named_and_the_next_one_is_tried(seeds):
    chosen = [Killer("a", "b", 1), Staller("a", "b", 2), Wrong("a", "b", 3)]
    killed, stalled, third = outcomes(chosen, seeds, seconds=3)
    assert (str(killed.mutant), killed.what) == ("a/b/1", "wrong")
    assert "the process ended with" in killed.detail and "in content" in killed.detail
    assert "no end within 3 s" in stalled.detail and "in content" in stalled.detail
    assert third.detail == "it was tried"
