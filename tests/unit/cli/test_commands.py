"""The commands parse and prof: arguments, formats, stdout and stderr."""

import ast
import functools
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.cli import parser
from fastprof.writers import COLUMNS, TRACE_COLUMNS
from support import commands, processes
from support.commands import forked
from support.exports import Export
from support.hypothesis_profiles import some
from support.waiting import PATIENCE

PACKAGE = Path(fastprof.__file__).parent
DICT_KEYS = [
    "kShortName", "kDuration", "layer", "trace", "reprMarkers", "marker", "seqMarker", "seqId",
    "subSeqId", "altSeqId", "dir", "mod", "op", "tid", "device", "stream", "grid", "block",
    "kLongName",
]  # fmt: skip
TABLE = COLUMNS + TRACE_COLUMNS
ALL_KEYS = ",".join(column.key for column in TABLE)
LINEAR = (
    "{'mod': 'torch.nn.functional', 'op': 'linear', 'args': ["
    "{'name': '', 'type': 'tensor', 'shape': (8, 16), 'dtype': 'float32'}, "
    "{'name': '', 'type': 'tensor', 'shape': (4, 16), 'dtype': 'float32'}]}"
)


def command(*words):
    return [sys.executable, "-m", *map(str, words)]


def run(*words, module="fastprof", stdin=b"", **others):
    """Run a command to its end; `stdin` is what it reads."""
    if module == "fastprof":
        return commands.run(*words, stdin=stdin, **others)
    return subprocess.run(
        command(module, *words), input=stdin, capture_output=True, timeout=PATIENCE, **others
    )


IN_SUCCESSION = """
import sys
from fastprof.cli import main
words = iter(sys.argv[1:])
while each := list(iter(lambda: next(words, ";"), ";")):
    assert main(each) == 0
"""


def run_in_succession(*commands, env):
    """The standard output of commands that one new interpreter runs."""
    words = [str(word) for each in commands for word in (*each, ";")]
    done = processes.python("-c", IN_SUCCESSION, *words, env=env, check=True, text=False)
    return done.stdout


@functools.cache
def report(*words, **others):
    """The standard output of a command that succeeds without warnings."""
    done = run(*words, **others)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    return done.stdout.decode()


def usage_error(*words):
    """The error message of a usage error; nothing goes to stdout."""
    done = run(*words)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def trace(folder):
    """Three kernels: in a linear layer, in a user's range, and without a launch."""
    export = Export().push_pop(0, 100, "layer:net", tid=1).push_pop(5, 95, LINEAR, tid=1)
    export.launch(10, 20, corr=1, tid=1)
    demangled = "void at::native::sgemm_tn<float, 4>(float*)"
    export.kernel(30, 70, corr=1, name="sgemm_tn", demangled=demangled, grid=(2, 3, 4))
    export.push_pop(200, 300, 'my "quoted", range', tid=1)
    export.launch(210, 220, corr=2, tid=1).kernel(230, 240, corr=2, name="mine")
    export.kernel(400, 450, corr=3, name="lost")
    return export.write(folder / "net.sqlite")


@pytest.fixture(scope="module")
def empty(folder):
    return Export().push_pop(0, 1, "a", tid=1).write(folder / "empty.sqlite")


@pytest.fixture(scope="module")
def large(folder):
    """Kernels whose lines exceed the capacity of a pipe."""
    export = Export()
    for i in range(5000):
        export.launch(10 * i, 10 * i + 1, corr=i, tid=1)
        export.kernel(10 * i + 2, 10 * i + 5, corr=i)
    return export.write(folder / "large.sqlite")


@pytest.fixture(scope="module")
def dict_file(folder, trace):
    path = folder / "net.dict"
    path.write_text(report("parse", trace))
    return path


# Invocations.


def test_the_modules_work_as_the_commands_do(trace, dict_file):
    assert report(trace, module="fastprof.parse") == report("parse", trace)
    for words in some(([trace], [dict_file, "--csv"], ["-c", "idx,op", trace]), 3):
        assert report(*words, module="fastprof.prof") == report("prof", *words)


def test_the_installed_command_is_the_same_program(trace):
    script = shutil.which("fastprof", path=os.path.dirname(sys.executable))
    if script is None:
        pytest.skip("fastprof is not installed in this environment")
    done = processes.ran([script, "prof", trace], text=False)
    assert (done.returncode, done.stdout.decode()) == (0, report("prof", trace))


def test_prof_reads_a_trace_a_dict_file_and_standard_input_alike(trace, dict_file):
    expected = report("prof", "--csv", trace)
    assert report("prof", "--csv", dict_file) == expected
    assert report("prof", "--csv", stdin=dict_file.read_bytes()) == expected


def test_both_commands_work_in_a_pipe(trace):
    parse = subprocess.Popen(
        forked("parse", trace), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    prof = processes.ran(forked("prof", "--csv"), stdin=parse.stdout, text=False)
    assert (parse.wait(), prof.returncode) == (0, 0)
    assert prof.stdout.decode() == report("prof", "--csv", trace)


def test_a_file_may_be_a_pipe_that_the_shell_made(dict_file):
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    line = f"{sys.executable} -m fastprof prof <(cat {dict_file} {dict_file} {dict_file})"
    done = processes.ran(["bash", "-c", line], text=False)
    lines = dict_file.read_bytes() * 3
    assert (done.returncode, done.stdout.decode()) == (0, report("prof", stdin=lines))


def test_options_may_come_before_and_after_the_file(trace, folder):
    expected = report("prof", "--csv", "-c", "idx,sil", trace)
    assert report("prof", trace, "--csv", "-c", "idx,sil") == expected
    assert report("prof", "--csv", trace, "-c", "idx,sil") == expected
    assert report("prof", trace, "--columns=idx,sil", "--csv") == expected
    assert report("-c", "idx,sil", "--csv", "prof", trace) == expected
    for words in (["-o", folder / "a", trace], [trace, "-o", folder / "b"]):
        assert report("parse", "--format", "jsonl", *words) == ""
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes() != b""


def test_options_may_come_before_a_file_in_place_of_a_command(trace, tmp_path):
    assert report("-w", "90", trace) == report("overview", "-w", "90", trace)
    missing = tmp_path / "missing.sqlite"
    assert b"missing.sqlite: no such file" in run("-w", "90", missing).stderr
    assert b"unknown command 'overviw'" in run("-w", "90", "overviw").stderr


@pytest.mark.parametrize(
    "name", ["with blank.sqlite", "a?mode=rwc&x.sqlite", "100%41.sqlite", "#1.sqlite", "-é層.txt"]
)
def test_any_file_name_will_do(name, trace, tmp_path):
    path = tmp_path / name
    path.write_bytes(trace.read_bytes())
    assert report("prof", path) == report("prof", trace)
    assert sorted(os.listdir(tmp_path)) == [name]


def test_a_file_name_that_is_not_utf8_will_do(trace, tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.sqlite"
    with open(path, "wb") as file:
        file.write(trace.read_bytes())
    done = run("prof", path)
    assert (done.returncode, done.stdout.decode()) == (0, report("prof", trace))


# Output of parse.


def test_parse_writes_one_dict_literal_a_kernel_with_pyprofs_keys(trace):
    lines = [ast.literal_eval(line) for line in report("parse", trace).splitlines()]
    assert [list(line) for line in lines] == [DICT_KEYS] * 3
    assert lines[0] == {
        "kShortName": "sgemm_tn", "kDuration": 40, "layer": ["net"], "trace": [],
        "reprMarkers": [], "marker": [LINEAR], "seqMarker": [], "seqId": [], "subSeqId": 0,
        "altSeqId": [], "dir": "fprop", "mod": ["torch.nn.functional"], "op": ["linear"], "tid": 1,
        "device": 0, "stream": 7, "grid": (2, 3, 4), "block": (128, 1, 1),
        "kLongName": "void at::native::sgemm_tn<float, 4>(float*)",
    }  # fmt: skip
    assert [line["tid"] for line in lines] == [1, 1, None]


def test_json_lines_can_be_read_again(trace, folder):
    path = folder / "net.jsonl"
    path.write_text(report("parse", trace, "--format=jsonl"))
    assert report("prof", "--csv", path) == report("prof", "--csv", trace)


@pytest.mark.parametrize("to_file", [True, False])
def test_parse_to_parquet_has_a_row_a_kernel(trace, folder, to_file):
    parquet = pytest.importorskip("pyarrow.parquet")
    if to_file:
        path = folder / "net.parquet"
        assert report("parse", trace, "--format", "parquet", "-o", path) == ""
        table = parquet.read_table(path)
    else:
        done = run("parse", trace, "--format", "parquet")
        table = parquet.read_table(io.BytesIO(done.stdout))
    assert table.num_rows == 3
    assert table.column("sil").to_pylist() == [40, 10, 50]
    assert table.column("tid").to_pylist() == [1, 1, None]


def test_output_goes_to_a_file_that_replaces_an_older_one(trace, tmp_path):
    out = tmp_path / "out"
    out.write_text("old and longer than what comes\n" * 1000)
    assert report("parse", trace, "-o", out) == ""
    assert out.read_text() == report("parse", trace)
    assert report("prof", trace, "--output", out) == ""
    assert out.read_text() == report("prof", trace)
    assert os.listdir(tmp_path) == ["out"]


def test_dict_lines_from_standard_input_are_not_the_output_either(dict_file, tmp_path):
    path = tmp_path / "net.dict"
    path.write_bytes(dict_file.read_bytes())
    with path.open("rb") as file:
        done = processes.ran(forked("prof", "-o", path), stdin=file, text=False)
    assert done.returncode in (0, 1, 2)
    report_or_input = (report("prof", dict_file).encode(), dict_file.read_bytes())
    assert path.read_bytes() == report_or_input[done.returncode > 0]


# Output of prof.


def test_every_column_of_python_can_be_chosen(trace):
    profile = fastprof.open(trace)
    assert sorted(profile.available) == sorted(column.key for column in TABLE)
    for row in (0, 1, 2):
        line = json.loads(report("prof", "--json", "-c", ALL_KEYS, trace).splitlines()[row])
        assert list(line) == ALL_KEYS.split(",")
        for key, value in line.items():
            known = profile.column(key).at(row)
            if key == "seq":
                known = () if known is None else (known,)
            assert value == (list(known) if isinstance(known, tuple) else known), key


def test_lists_and_what_is_not_known_have_a_text_in_every_column(trace):
    words = ["-c", "start,end,name,pid,launch,ranges,phases,copied,line,library_line,kind"]
    assert report("prof", *words, trace).splitlines() == [
        "Start(ns) End(ns) Name PId Launch Ranges Phases Copied Line LibraryLine Kind",
        "30 70 void_at::native::sgemm_tn<float,_4>(float*) 100 cudaLaunchKernel_v7000 - - na na na"
        " kernel",
        '230 240 mine 100 cudaLaunchKernel_v7000 my_"quoted",_range - na na na kernel',
        "400 450 lost 100 na - - na na na kernel",
    ]


def test_dict_lines_say_what_they_do_not_tell_and_print_na(dict_file):
    done = run("prof", "-c", "idx,start,kind,name", dict_file)
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[2] == "2 na na mine"
    told = done.stderr.decode()
    assert (
        "dict lines do not contain start,kind, shown as na; run prof on the original trace" in told
    )


def test_blanks_in_names_of_kernels_become_underscores(tmp_path):
    export = Export().graph_trace(0, 9, corr=None)
    export.kernel(10, 20, corr=None, name="x", demangled="my kernel<int>(float*)")
    export.kernel(30, 40, corr=None, name="y", demangled="void unsigned int f<x y>::g()")
    path = export.write(tmp_path / "x.sqlite")
    for words in (["--csv"], []):
        text = report("prof", *words, "-c", "kernel", path).replace('"', "")
        assert not re.search("[ \t]", text), text
        assert text.splitlines()[2:] == ["my_kernel", "unsigned_int_f"]


def test_a_single_elastic_column_gets_all_of_the_width(trace):
    line = report("prof", "-w", "100", "-c", "idx,kernel,sil", trace).splitlines()[1]
    assert line == "      1 " + "sgemm_tn".ljust(83) + " " + "40".rjust(10)


# Usage errors.


def test_an_unknown_column_is_a_usage_error_that_lists_the_valid_ones(trace):
    message = usage_error("prof", "-c", "idx,nonsense", trace)
    assert "nonsense" in message
    for column in TABLE:
        assert re.search(rf"\b{column.key}\b", message)


@pytest.mark.parametrize(
    "words", [["--csv", "-w", "150"], ["-w", "150", "--json"], ["--csv", "--json"]]
)
def test_formats_exclude_each_other(words, trace):
    assert "not allowed with" in usage_error("prof", *words, trace)


def test_the_least_width_is_wide_enough(trace):
    least = re.search(r"(\d+); see", usage_error("prof", "-w", "1", trace))[1]
    assert report("prof", "-w", least, trace)
    usage_error("prof", "-w", str(int(least) - 1), trace)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["parse"],
        ["parse", "a", "b"],
        ["prof", "a", "b"],
        ["prof", "--nonsense", "a"],
        ["parse", "--csv", "a"],
        ["parse", "--format", "xml", "a"],
        ["prof", "-w", "wide", "a"],
        ["prof", "-o"],
    ],
)
def test_wrong_words_are_usage_errors(words):
    message = usage_error(*words)
    prog = " ".join(["fastprof", *[word for word in words[:1] if word != "nonsense"]])
    assert message.startswith(f"{prog}: error: ") and message.endswith(f"ee {prog} --help\n")
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["layerz"], "unknown command 'layerz'; did you mean layers?"),
        (["overview", "--bandwith", "1", "FILE"], "unknown option --bandwith; did you mean --ban"),
        (["summary", "--sort", "gpu_ms", "FILE"], "unknown column 'gpu_ms'; did you mean gpu_ns"),
        (["summary", "-c", "roofs", "FILE"], "unknown column 'roofs'; did you mean roof"),
        (["summary", "--by", "opp", "FILE"], "unknown key 'opp'; did you mean op?"),
        (["export", "--to", "sqllite", "FILE"], "did you mean sqlite?"),
        (
            ["layers", "FILE", "FILE"],
            "fastprof diff compares two captures, fastprof ranks the ranks of a run",
        ),
    ],
)
def test_mistyped_words_get_the_nearest_names(words, nearest, trace):
    assert nearest in usage_error(*[trace if word == "FILE" else word for word in words])


def test_headings_name_columns(trace):
    for name in ("gpu", "gpu(ns)", "gpu_ns"):
        words = ("summary", "--sort", name, "-c", name, trace)
        assert "gpu(ns)" in report(*words).splitlines()


def test_a_selection_of_nothing_names_what_there_is(trace):
    done = run("summary", "--csv", "--where", "op=lineer", trace)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert done.stderr.startswith(b"fastprof: no work has op=lineer: ")
    done = run("summary", "--where", "op!=*", "--where", "dir=fprop", trace)
    assert b"no work has op!=*: " in done.stderr and b"dir" not in done.stderr


def test_help_is_a_command_too():
    assert run("help").stdout == run("--help").stdout
    assert run("help", "layers").stdout == run("layers", "--help").stdout


def test_usage_is_looked_at_before_the_file(tmp_path):
    usage_error("prof", "-c", "nonsense", tmp_path / "missing")


# stdout, stderr, exit codes.


@pytest.mark.parametrize("words", [["parse"], ["prof"], ["prof", "--csv"], ["prof", "-w", "150"]])
def test_counts_and_coverage_go_to_stderr_and_the_report_alone_to_stdout(words, trace):
    done = run(*words, trace)
    message = done.stderr.decode()
    assert "Found 3 kernels" in message
    for word in ("launch 50.0 %", "range 50.0 %", "op 40.0 %", "shapes 40.0 %", "cost 40.0 %"):
        assert word in message
    assert b"Found" not in done.stdout
    assert b"%" not in done.stdout
    assert done.stdout.count(b"\n") == 3 + (words[0] == "prof")


def test_no_kernels_is_said_and_no_error(empty):
    for words in (["parse", empty], ["parse", "--format", "jsonl", empty], ["prof"]):
        done = run(*words)
        assert (done.returncode, done.stderr) == (0, b"Found 0 kernels. Exiting.\n")
        assert done.stdout == b"" or words == ["prof"]
    done = run("prof", "--csv", empty)
    assert (done.returncode, done.stderr) == (0, b"Found 0 kernels. Exiting.\n")
    assert done.stdout.count(b"\n") <= 1


def test_no_kernels_can_be_written_to_any_format(empty, tmp_path):
    for form in ("dict", "jsonl", "parquet"):
        if form == "parquet":
            pytest.importorskip("pyarrow")
        assert report("parse", empty, "--format", form, "-o", tmp_path / form) == ""
        assert (tmp_path / form).exists()


@pytest.mark.parametrize("words", [["parse"], ["prof"], ["prof", "--csv"], ["prof", "--json"]])
def test_a_closed_pipe_ends_quietly(words, large):
    start = commands.command if words == ["parse"] else forked
    process = subprocess.Popen(start(*words, large), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline()
    process.stdout.close()
    message = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == 0
    assert [line for line in message.splitlines() if "Found 5000 kernels" not in line] == []


def shell(line):
    return processes.ran(["sh", "-c", line], text=False)


def test_a_closed_stderr_does_not_put_messages_into_the_report(trace):
    done = shell(f"{sys.executable} -m fastprof prof {trace} 2>&-")
    assert (done.returncode, done.stdout.decode()) == (0, report("prof", trace))


def test_a_closed_stdout_or_stdin_is_one_line(trace):
    for line in (f"prof {trace} >&-", "prof <&-"):
        done = shell(f"{sys.executable} -m fastprof {line}")
        assert b"Traceback" not in done.stderr
        assert done.returncode in (1, 2)


def test_output_is_utf8_whatever_the_locale_says(tmp_path):
    export = Export().push_pop(0, 100, "layer:é層", tid=1).launch(1, 2, corr=1, tid=1)
    path = export.kernel(3, 4, corr=1, name="ñ").write(tmp_path / "é.sqlite")
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = (["parse"], ["prof", "--csv", "-c", "layer,kernel"], ["prof", "--json"])
    expected = "".join(report(*word, path) for word in words)
    assert run_in_succession(*([*word, path] for word in words), env=env).decode() == expected
    assert "é層" in report("prof", "--csv", "-c", "layer", path)


# Help and imports.


@pytest.mark.parametrize("words", [["--help"], ["parse", "--help"], ["prof", "-h"], ["--version"]])
def test_help_imports_neither_numpy_nor_apsw_nor_torch(words):
    program = (
        "import sys; from fastprof.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = processes.python("-c", program, *words)
    assert done.returncode == 0
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "fastprof" in loaded
    assert loaded.isdisjoint({"numpy", "apsw", "torch", "pandas", "pyarrow", "tqdm", "sqlite3"})


def test_help_of_prof_says_every_column():
    text = report("prof", "--help")
    for column in TABLE:
        assert re.search(rf"^ +{column.key} +{re.escape(column.about)}$", text, re.MULTILINE)


def test_version_is_that_of_the_package():
    assert report("--version") == f"fastprof {fastprof.__version__}\n"


def test_nothing_but_annotate_imports_torch():
    modules = [path for path in PACKAGE.rglob("*.py") if "annotate" not in path.parts]
    assert len(modules) > 20
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not [name for name in names if name.split(".")[0] in ("torch", "nvtx")], path


def test_a_torch_that_is_there_is_not_touched(trace, dict_file, tmp_path):
    for name in ("torch", "nvtx"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__name__} was imported')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    assert run_in_succession(["parse", trace], ["prof", trace], ["prof", dict_file], env=env)


# Own source files.


def test_globs_say_which_lines_are_mine_in_prof_parse_and_python(folder):
    marker = "{'traceMarker': ['/net/train.py:7', '/net/model.py:9', 'torch/_ops.py:3']}"
    export = Export().push_pop(0, 90, marker, tid=1)
    path = export.launch(10, 20, corr=1, tid=1).kernel(30, 40, corr=1).write(folder / "m.sqlite")
    lines = folder / "m.dict"
    lines.write_text(report("parse", path))
    for source in (path, lines):
        for globs, line in (
            ([], "/net/model.py:9"),
            (["train.py"], "/net/train.py:7"),
            (["x", "net"], "/net/model.py:9"),
            (["torch"], "torch/_ops.py:3"),
            (["nothing"], "na"),
        ):
            words = [word for glob in globs for word in ("--mine", glob)]
            assert report("prof", *words, "-c", "line", source).splitlines()[1] == line
            assert fastprof.open(source, mine=globs).column("line").at(0) == (
                None if line == "na" else line
            )
    parquet = folder / "m.parquet"
    report("parse", "--mine", "train.py", "--format", "parquet", path, "-o", parquet)
    table = pytest.importorskip("pyarrow.parquet").read_table(parquet)
    assert table.column("line").to_pylist() == ["/net/train.py:7"]
    assert table.column("trace").to_pylist() == [["/net/train.py:7", "/net/model.py:9"]]


def test_an_empty_glob_is_a_usage_error(trace):
    assert "expected a file or folder" in usage_error("prof", "--mine", "./", trace)


@pytest.mark.parametrize(
    ("words", "name", "expected"),
    [
        (("diff", "a", "--by", "op", "b"), "captures", ["a", "b"]),
        (("diff", "--by", "op", "a", "b"), "captures", ["a", "b"]),
        (("diff", "a", "--limit", "3", "--", "-b"), "captures", ["a", "-b"]),
        (("lines", "a", "--limit", "3", "net.py", "--csv", "b.py"), "files", ["net.py", "b.py"]),
        (("lines", "a", "--limit", "3"), "files", []),
        (("stats", "a", "--json", "cuda_api_sum"), "names", ["cuda_api_sum"]),
    ],
)
def test_options_may_stand_between_files(words, name, expected):
    assert list(getattr(parser().parse_args(words), name)) == expected
