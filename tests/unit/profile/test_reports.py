"""The registry of reports, their commands, and reports of users."""

import csv
import io
import json
from pathlib import Path

import pytest

import fastprof
from fastprof.analysis import registry, reports
from fastprof.analysis.document import reports_page
from fastprof.analysis.key_names import KEY_NAMES
from fastprof.model.table import Tables
from support.commands import one_line, run
from support.hypothesis_profiles import IS_FULL

NAMES = sorted(reports.all_reports())
PAGE = Path(__file__).parents[3] / "docs" / "reports.md"
USERS = """
import fastprof

@fastprof.report("streams", options=[fastprof.Option("least", "least kernels", "N", int, 0)])
def streams(profile, least):
    '''GPU time by stream.'''
    table = profile.summary(by="stream")
    return table.take([row for row in range(table.n_rows) if table["kernels"][row] >= least])
"""


OF_DICT_LINES = {
    "copies": "no memory copies or memsets; in Python, open the trace with copies=True",
    "idle": "dict lines contain no times: use the original trace",
    "launches": "dict lines have no times: open the trace that they are from",
    "memory": "no memory events in dict lines: use the original trace",
    "overlap": "dict lines contain no times: use the original trace",
    "ranges": "no ranges in these dict lines: use the original trace",
    "steps": "dict lines contain no times: run fastprof steps on the original trace",
    "whatif": "dict lines contain no times: run fastprof whatif on the original trace",
}


@pytest.fixture
def no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_added", dict(registry.added()))


def output_of(*words: str | Path) -> str:
    done = run(*words)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_page_lists_the_registry():
    assert PAGE.read_text(encoding="utf-8") == reports_page(), "run: python docs/make_reports.py"


@pytest.mark.parametrize("name", NAMES)
def test_a_command_prints_the_table_of_its_report(name, trace, profile):
    table = profile.report(name)
    result = json.loads(output_of(name, trace, "--json"))
    assert result == json.loads(table.to_json())
    assert result["file"] == str(trace)
    contents = {"tables"} if isinstance(table, Tables) else {"rows", "total"}
    assert {"fastprof", "schema", "gpu", "steps", "coverage"} | contents <= set(result)
    outputs = [
        (["--csv"], table.csv()),
        (["--limit", "0", "-w", "999"], table.text(None, width=999)),
        (["--markdown", "--limit", "0"], table.markdown(None)),
    ]
    for words, expected in outputs if IS_FULL else [outputs[NAMES.index(name) % 3]]:
        assert output_of(name, trace, *words) == expected
    if not isinstance(table, Tables):
        known = {column.key for column in reports.find(name).columns}
        assert known >= set(table.columns) - set(KEY_NAMES)
    assert all(column.about for column in reports.find(name).columns)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_capture_gives_an_empty_table_with_a_header(name, generated):
    empty = generated(0)
    result = json.loads(output_of(name, empty, "--json"))
    tables = result["tables"].values() if "tables" in result else [result]
    assert [table["rows"] for table in tables] == [[]] * len(tables)
    assert len(output_of(name, empty).splitlines()) >= 1


@pytest.mark.parametrize("name", OF_DICT_LINES)
def test_what_dict_lines_lack_is_a_note(name, tmp_path):
    (tmp_path / "net.dict").write_text("{'kShortName': 'k', 'kDuration': 5}\n")
    table = fastprof.open(tmp_path / "net.dict").report(name)
    assert (table.n_rows, *table.notes) == (0, OF_DICT_LINES[name])
    assert output_of(name, tmp_path / "net.dict").splitlines()[-1] in OF_DICT_LINES[name]


def test_columns_sort_and_limit(trace):
    text = output_of(
        "summary", trace, "--by=op", "-c", "op,max_ns", "--sort=max_ns", "--limit=4", "--csv"
    )
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["op", "max_ns"]
    times = [int(row[1]) for row in rows[1:]]
    assert len(times) == 4
    assert times == sorted(times, reverse=True)


def test_ascending_puts_the_smallest_first(trace):
    words = ("summary", trace, "--by=op", "--sort=gpu_ns", "--ascending", "--csv", "-c", "gpu_ns")
    times = [int(row[0]) for row in list(csv.reader(io.StringIO(output_of(*words))))[1:]]
    assert len(times) > 4 and times == sorted(times)


def test_a_width_bounds_every_line_of_the_table(trace):
    lines = output_of("summary", trace, "--by", "layer,op", "-w", "72").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("layer"))
    end = next(i for i, line in enumerate(lines) if line.startswith("total"))
    assert max(map(len, lines[start : end + 1])) <= 72


def test_output_goes_to_a_file(trace, tmp_path):
    assert output_of("summary", trace, "--csv", "-o", tmp_path / "s.csv") == ""
    assert (tmp_path / "s.csv").read_text() == output_of("summary", trace, "--csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "opp"], "argument --by: unknown key 'opp'; did you mean op?"),
        (["--by", "op,op"], "expected keys to group by, each once; found 'op,op'"),
        (["--where", "opp=mm"], "argument --where: unknown key 'opp'"),
        (["--where", "mm"], "expected KEY=PATTERN such as op=linear, found 'mm'"),
        (["--sort", "gpus"], "unknown column 'gpus'; did you mean gpu"),
        (["-c", "op,flop"], "unknown column 'flop'; did you mean"),
        (["--ascending"], "--ascending needs --sort COLUMN"),
        (["--limit", "-1"], "expected a non-negative integer, found '-1'"),
    ],
)
def test_wrong_names_are_usage_errors_before_the_file_is_read(words, message, tmp_path):
    done = run("summary", tmp_path / "absent.sqlite", *words)
    assert done.returncode == 2
    assert message in done.stderr.decode().splitlines()[-1]


def test_an_unknown_command_names_the_nearest_report(trace):
    done = run("sumary", trace)
    assert done.returncode == 2
    assert "did you mean summary" in done.stderr.decode()


@pytest.mark.usefixtures("no_others")
def test_a_function_becomes_a_report(profile):
    @fastprof.report("shapes")
    def by_shape(profile: fastprof.Profile) -> object:
        """Time by shape.

        Further lines are the help of the command.
        """
        return profile.summary(by="shape")

    assert reports.find("shapes").about == "Time by shape."
    assert list(profile.report("shapes").rows()) == list(profile.summary("shape").rows())
    with pytest.raises(fastprof.ReportError, match="unknown report 'shape'; did you mean shapes"):
        profile.report("shape")
    with pytest.raises(fastprof.ReportError, match="expected a name of lower-case letters"):
        fastprof.report("By Shape")(by_shape)


def test_a_file_of_the_user_adds_a_command(trace, tmp_path):
    (tmp_path / "mine.py").write_text(USERS)
    result = json.loads(output_of("streams", trace, "--ops", tmp_path / "mine.py", "--json"))
    assert {"stream", "gpu_ns"} <= result["rows"][0].keys()
    least = str(result["rows"][0]["kernels"])
    again = json.loads(
        output_of("streams", trace, f"--ops={tmp_path / 'mine.py'}", "--json", "--least", least)
    )
    assert [row["stream"] for row in again["rows"]] == [
        row["stream"] for row in result["rows"] if row["kernels"] >= int(least)
    ]
    (tmp_path / "mine.py").write_text("1 / 0")
    message = one_line(run("streams", trace, "--ops", tmp_path / "mine.py"))
    assert "mine.py, line 1: ZeroDivisionError" in message


def test_an_installed_package_adds_a_command(trace, tmp_path, monkeypatch):
    (tmp_path / "of_streams.py").write_text(USERS)
    about = tmp_path / "of_streams-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: of-streams\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[fastprof.reports]\nstreams = of_streams\n")
    done = run("streams", trace, "--json", env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"})
    assert done.returncode == 0, done.stderr.decode()
    assert "stream" in json.loads(done.stdout)["rows"][0]
