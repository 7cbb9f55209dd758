"""The `fastprof ranks` command: stdout, stderr, exit codes, and files that are no ranks."""

import csv
import gzip
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from bench.ranks import faults, programs, truth

import fastprof
from fastprof.api import batch as batch_module
from fastprof.cli import main
from fastprof.ranks.run.waits import PARTS
from fastprof.ranks.work import work
from support import rank_files
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nvprof_files import NvprofFile

N_RANKS = 4
FAULTS = [faults.Data(rank=1, ns=5_000_000), faults.Clock(rank=2, offset=1_500_000_000)]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> tuple[Path, truth.Truth]:
    """Four ranks, of which 1 loads data for longer, and the answers."""
    folder = tmp_path_factory.mktemp("simulated")
    answer = truth.write(folder, programs.ddp(N_RANKS, blocks=2), steps=4, faults=FAULTS)
    (folder / "truth.json").unlink()
    return folder, answer


@pytest.fixture(scope="module")
def folder(simulated) -> Path:
    return simulated[0]


@pytest.fixture
def own(folder, tmp_path) -> Path:
    """A copy of the run, to change."""
    return Path(shutil.copytree(folder, tmp_path / "own"))


@pytest.fixture
def run(monkeypatch, capfd):
    """Run a command and its readers in this process; returns code, stdout, stderr."""

    def run_here(paths, options, jobs, memory):
        yield from (work(path, options) for path in paths)

    def run(*words):
        code = main([*map(str, words)])
        out, err = capfd.readouterr()
        return code, out, err

    monkeypatch.setattr(batch_module, "run_local", run_here)
    return run


@pytest.fixture
def ranks(run):
    def ranks(*words):
        return run("ranks", *words)

    return ranks


@pytest.fixture
def usage(run, capfd):
    def usage(*words):
        with pytest.raises(SystemExit) as end:
            run("ranks", *words)
        assert end.value.code == 2
        return capfd.readouterr().err

    return usage


@pytest.fixture
def refused(ranks):
    """A function from the words of a command that ends with exit code 1 to its only line."""

    def refused(*words):
        code, out, err = ranks(*words, "--no-progress")
        assert (code, out) == (1, ""), err
        (line,) = err.splitlines()
        return line

    return refused


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


# The report.


def test_the_first_line_is_the_answer(ranks, simulated):
    folder, answer = simulated
    code, out, err = ranks(folder)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("rank 1 holds the others up: data loading")
    assert " costs " in lines[0] and "without stragglers a step would take" in lines[0]
    assert "clocks of 1 rank are moved, that of rank 2 the most: by -1.5 s" in out
    for title in ("groups, a step and rank", "ranks, a step", "causes of late arrivals"):
        assert title in lines
    progress = err.splitlines()
    assert len(progress) == N_RANKS
    assert progress[0].startswith(f"fastprof: [1/4] {folder}/rank0.json.gz: 1 rank, ")
    costs = fastprof.open_ranks(folder, jobs=1).causes
    assert costs["costs_ns"][0] == pytest.approx(answer.faults[0].saves_in[1], rel=0.05)


def test_a_directory_or_several_files_need_no_command(run, folder):
    expected = run("ranks", folder)[:2]
    assert run(folder)[:2] == expected
    code, out, _ = run(*sorted(folder.iterdir()))
    assert (code, out.partition("next: ")[0]) == (0, expected[1].partition("next: ")[0])
    assert run(folder, "--table", "causes")[:2] == run("ranks", folder, "--table", "causes")[:2]
    one = next(folder.iterdir())
    assert run(one)[1] != run("ranks", one)[1]  # a file alone is the first look at it


def test_a_run_of_several_ranks_needs_no_command(run, folder, tmp_path, monkeypatch):
    home = tmp_path / "fastprof-runs" / "train"
    shutil.copytree(folder, home)
    facts: dict[str, Any] = {"command": ["train.py"], "seconds": 1.0, "processes": []}
    (home / "run.json").write_text(json.dumps(facts))
    monkeypatch.chdir(tmp_path)
    expected = run("ranks", folder, "--csv")[1]
    assert run(home, "--csv")[:2] == (0, expected)
    assert run("ranks", home, "--csv")[:2] == (0, expected)
    assert run("ranks", "train", "--csv")[:2] == (0, expected)


def test_the_order_of_files_does_not_matter(ranks, folder):
    paths = sorted(folder.iterdir())
    assert ranks(*paths[::-1])[:2] == ranks(*paths)[:2]


@pytest.mark.parametrize(
    "table", ["ranks", "groups", "causes", "waits", "steps", "calls", "stages", "unmatched"]
)
def test_each_table_can_be_had_alone_and_as_csv(ranks, folder, table):
    code, text, _ = ranks(folder, "--table", table, "--top", "0", "-w", "300")
    assert code == 0
    code, out, _ = ranks(folder, "--table", table, "--csv")
    assert code == 0
    assert len(rows_of(out)) == len(text.splitlines()) - 1
    if table in ("steps", "ranks"):
        for row in rows_of(out):
            parts = [float(row[f"{name}_ns"]) for name in PARTS]
            assert sum(parts) == pytest.approx(float(row["step_ns"]), abs=1)


def test_csv_is_of_causes_or_changes(ranks, folder):
    causes = rows_of(ranks(folder, "--csv")[1])
    assert (causes[0]["rank"], causes[0]["cause"]) == ("1", "data loading")
    changes = rows_of(ranks(folder, "--csv", "--what-if", "no-data-loading:1")[1])
    assert [row["change"] for row in changes] == ["as recorded", "no-data-loading:1"]


def test_json_has_the_tables(ranks, folder):
    code, out, _ = ranks(folder, "--json", "--what-if", "median:1")
    facts = json.loads(out)
    assert code == 0
    assert {"ranks", "groups", "causes", "stages", "what_if", "answer", "step_ns"} <= {*facts}
    assert [row["rank"] for row in facts["ranks"]] == list(range(N_RANKS))
    assert [row["change"] for row in facts["what_if"]] == ["as recorded", "median:1"]
    assert facts["missing"] == facts["failures"] == []
    assert facts["answer"].startswith("rank 1 holds the others up")
    assert "NaN" not in out


def test_changes_are_a_table(ranks, folder):
    words = ["--what-if", "no-stragglers", "--what-if", "communication:0.5"]
    code, out, _ = ranks(folder, *words)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        "as", "no-stragglers", "communication:0.5",
    ]  # fmt: skip


def test_recorded_clocks_stay(ranks, folder):
    rows = rows_of(ranks(folder, "--table", "ranks", "--csv", "--clock", "recorded")[1])
    assert {row["offset_ns"] for row in rows} == {"0"}
    rows = rows_of(ranks(folder, "--table", "ranks", "--csv")[1])
    assert [round(int(row["offset_ns"]), -5) for row in rows] == [0, 0, -1_500_000_000, 0]


def test_output_goes_to_a_file(ranks, folder, tmp_path):
    expected = ranks(folder, "--csv")[1]
    assert ranks(folder, "--csv", "-o", tmp_path / "a.csv")[1] == ""
    assert (tmp_path / "a.csv").read_text() == expected


def test_usage_errors(usage, folder):
    assert "--csv and --json: expected one of them" in usage(folder, "--csv", "--json")
    assert "unknown change 'faster'; valid: median:RANK" in usage(folder, "--what-if", "faster")
    message = "'median:7': expected a rank of the run (0, 1, 2, 3), found '7'"
    assert message in usage(folder, "--what-if", "median:7")
    assert "communication:0.5 for twice as fast" in usage(folder, "--what-if", "communication:x")
    assert "unknown value 'nothing'; valid: ranks, groups," in usage(folder, "--table", "nothing")


# Files that cannot be read, or are no ranks of one run.


def test_bad_files_are_lines_and_exit_code_1_at_the_end(ranks, own):
    (own / "bad.json").write_bytes(b"nothing")
    (own / "rank3.json.gz").write_bytes(b"")
    code, out, err = ranks(own)
    assert code == 1
    assert err.splitlines()[-1] == "fastprof: 2 of 5 files could not be read or have no GPU work"
    for name in ("bad.json", "rank3.json.gz"):
        assert sum(f"{name}: " in line for line in err.splitlines()) == 1
    assert out.startswith("rank 1 holds the others up: data loading")
    assert "3 ranks in 5 files" in out
    assert "missing: rank 3; waits for them are unknown" in out


def test_a_file_that_is_cut_off_is_read_up_to_there_with_a_warning(ranks, own):
    path = own / "rank3.json.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    code, out, err = ranks(own)
    assert code == 0
    assert out.startswith("rank 1 holds the others up: data loading")
    told = " ".join(out.split())  # lines are wrapped
    assert f"2 warnings of rank 3; the first: {path}: the compressed data is cut" in told
    assert sum(", 2 warnings" in line for line in err.splitlines()) == 1
    assert len(json.loads(ranks(own, "--json")[1])["warnings"]) == 2


def test_a_missing_rank_is_named(ranks, own):
    (own / "rank2.json.gz").unlink()
    code, out, _ = ranks(own)
    assert code == 0
    assert "missing: rank 2; waits for them are unknown" in out
    assert out.startswith("rank 1 holds the others up: data loading")


def test_a_rank_twice_is_an_error(refused, own, folder):
    shutil.copy(folder / "rank1.json.gz", own / "rank1_again.json.gz")
    line = refused(own)
    assert "rank1.json.gz" in line and "rank1_again.json.gz: both are of rank 1" in line
    assert "give one file a rank" in line


def test_runs_of_different_size_are_an_error(refused, own, tmp_path):
    truth.write(tmp_path / "two", programs.ddp(2, blocks=1), steps=2)
    shutil.copy(tmp_path / "two" / "rank0.json.gz", own / "rank0.json.gz")
    line = refused(own)
    assert "is of a run of 2 ranks" in line and "of one of 4 ranks; give the files of one" in line


def test_two_recordings_are_an_error(refused, own, tmp_path):
    """Numbers of collectives do not coincide."""
    program = programs.ddp(N_RANKS, blocks=2)
    truth.write(tmp_path / "later", program, steps=4, seed=2, first_step=90)
    for rank in (2, 3):
        shutil.copy(tmp_path / "later" / f"rank{rank}.json.gz", own)
    line = refused(own)
    assert "rank0.json.gz" in line and "rank2.json.gz: both are of the group 0 default_pg" in line
    (own / "rank1.json.gz").unlink()
    (own / "rank3.json.gz").unlink()
    assert "are not ranks of one run; give the files of one recording" in refused(own)


def test_one_rank_alone(ranks, folder):
    code, out, _ = ranks(folder / "rank1.json.gz")
    assert code == 0
    assert out.startswith("one rank, 1: nobody can tell whom it waits for; give the files of all")
    assert "1 rank in 1 file" in out
    assert "missing: ranks 0, 2, 3; waits for them are unknown" in out


def silent(path: Path) -> Path:
    """A trace with a kernel and no communication."""
    trace = KinetoFile()
    trace.op(0, 100, "aten::mm").launch(10, 20, corr=1).kernel(30, 4000, corr=1)
    return trace.write(path)


def test_files_without_communication(ranks, tmp_path):
    for rank in range(2):
        silent(tmp_path / f"rank{rank}.json")
    code, out, err = ranks(tmp_path)
    assert code == 0
    assert "clocks: unknown, ranks have no collective in common" in out
    assert "no collectives are recorded of ranks 0, 1" in out
    assert "warning" not in err.lower()


def test_a_file_without_communication_among_others(ranks, own):
    silent(own / "rank3.json")
    (own / "rank3.json.gz").unlink()
    code, out, _ = ranks(own)
    assert code == 0
    assert out.startswith("rank 1 holds the others up: data loading")
    assert "no collectives are recorded of rank 3" in out


def test_an_empty_directory(refused, tmp_path):
    assert "no traces in this directory; expected files named *.sqlite" in refused(tmp_path)
    assert "no traces in this directory; expected files named *.x" in refused(
        tmp_path, "--pattern", "*.x"
    )


def test_a_file_that_does_not_exist(ranks, tmp_path):
    code, out, err = ranks(tmp_path / "none.json")
    assert code == 1
    assert out.startswith("no rank with GPU work")
    assert "none.json: no such file" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", ["--json", "--csv", "--what-if=no-stragglers", "--table=ranks"])
def test_no_rank_at_all_has_empty_tables(ranks, tmp_path, option):
    (tmp_path / "bad.json").write_bytes(b"nothing")
    code, out, err = ranks(tmp_path / "bad.json", option)
    assert code == 1
    assert "Traceback" not in err
    if option == "--json":
        assert json.loads(out)["ranks"] == []


def test_dict_lines_have_no_times(run, folder, tmp_path):
    lines = tmp_path / "rank0.dict"
    assert run("parse", folder / "rank0.json.gz", "-o", lines)[0] == 0
    code, out, _ = run("ranks", lines)
    assert code == 1
    assert f"{lines}: has no GPU work with times" in out
    paths = [lines, *(folder / f"rank{rank}.json.gz" for rank in range(1, N_RANKS))]
    code, out, err = run("ranks", *paths)
    assert code == 1
    assert out.startswith("rank 1 holds the others up: data loading")
    assert "1 of 4 files could not be read or have no GPU work" in err


def test_files_of_nvprof(ranks, tmp_path):
    for rank in range(2):
        file = NvprofFile()
        for number in range(4):
            at = number * 1_000_000 + rank
            file.launch(at, at + 10, corr=2 * number, tid=1)
            file.kernel(at + 20, at + 300_000 * (1 + rank), corr=2 * number, name="_Z5sgemmPf")
            file.launch(at + 30, at + 40, corr=2 * number + 1, tid=1)
            file.kernel(
                at + 20 + 300_000 * (1 + rank), number * 1_000_000 + 700_000,
                corr=2 * number + 1, name="_Z33ncclAllReduceRingLLKernel_sum_f3214ncclCollDesc",
            )  # fmt: skip
        file.write(tmp_path / f"rank{rank}.nvvp")
    code, out, err = ranks(tmp_path)
    assert code == 0, err
    assert "2 ranks in 2 files; all 4 collectives are matched" in out
    assert out.startswith("rank 1 holds the others up: slower GPU")


def test_a_file_of_several_processes(ranks, tmp_path):
    """Process 200 takes longer before each all-reduce."""
    file = Export()
    launched = 0  # the hosts run ahead
    for number in range(6):
        begin = number * 1_000_000
        for device, pid in enumerate((100, 200)):
            at = begin
            for end, name in (
                (begin + 300_000 * (1 + device), "sgemm"),
                (begin + 700_000, rank_files.ALL_REDUCE),
            ):
                launched += 1
                file.launch(9 * launched, 9 * launched + 5, corr=launched, tid=1, pid=pid)
                file.kernel(at + 1000, end, corr=launched, name=name, pid=pid, device=device)
                at = end
    code, out, err = ranks(file.write(tmp_path / "both.sqlite"))
    assert code == 0
    assert "fastprof: [1/1] " in err and ": 2 ranks, 12 collectives, " in err
    assert "2 ranks in 1 file; all 6 collectives are matched" in out
    assert "clocks agree" in out
    assert out.startswith("rank 1 holds the others up: slower GPU (sgemm")


def test_reports_of_a_run_are_in_its_truth(simulated):
    """The parts of steps are those of the simulation."""
    folder, answer = simulated
    run = fastprof.open_ranks(folder, jobs=1)
    compute = {(step.rank, step.step): step.compute for step in answer.steps if 0 < step.step < 3}
    result = {
        (row["rank"], row["step"]): row["compute_ns"]
        for row in run.steps().rows()
        if 0 < row["step"] < 3
    }
    assert result.keys() == compute.keys()
    for key, ns in compute.items():
        assert result[key] == pytest.approx(ns, rel=0.001), key


def test_compressed_and_plain_files_are_one_rank(ranks, own):
    """The plain file is preferred."""
    data = gzip.decompress((own / "rank0.json.gz").read_bytes())
    (own / "rank0.json").write_bytes(data)
    code, _, err = ranks(own)
    assert (code, len(err.splitlines())) == (0, N_RANKS)
    assert os.fspath(own / "rank0.json.gz") not in err
