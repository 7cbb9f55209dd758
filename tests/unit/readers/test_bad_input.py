"""Bad input is reported in one line on stderr: no traceback, no leftovers, input unchanged."""

import array
import ast
import csv
import fcntl
import os
import random
import shutil
import signal
import subprocess
import termios
from pathlib import Path

import pytest

from support.commands import command, one_line, refusal, run, state_of
from support.exports import Export
from support.hypothesis_profiles import IS_FULL
from support.sqlite_files import execute
from support.waiting import PATIENCE, wait_for

# The full profile has every kind of damage at every place, the fast one a share of these cases.
SHARE = 1 if IS_FULL else 12
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
DICT_LINE = (
    "{'kShortName': 'mm', 'kDuration': 6624, 'layer': ['a'], 'trace': ['t.py:3'], 'reprMarkers': "
    "[], 'marker': [\"{'mod': 'torch', 'op': 'mm', 'args': []}\"], 'seqMarker': ['mm, seq = 5'], "
    "'seqId': [5], 'subSeqId': 0, 'altSeqId': [], 'dir': 'fprop', 'mod': ['torch'], 'op': ['mm'], "
    "'tid': 1, 'device': 0, 'stream': 7, 'grid': (640, 1, 2), 'block': (128, 1, 1), "
    "'kLongName': 'void mm<float>(int)'}\n"
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.sqlite"


# Not an export.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: None, "no such file"),
        (Path.mkdir, "is a directory"),
        (Path.touch, "is empty"),
        (lambda file: file.symlink_to("nowhere"), "no such file"),
    ],
)
def test_what_is_no_file_with_content_is_named(make, message, file, tmp_path):
    make(file)
    assert message in refusal(file, tmp_path)


def test_an_empty_json_file_is_no_export(tmp_path):
    (tmp_path / "x.json").touch()
    assert "is empty; get the file again" in refusal(tmp_path / "x.json", tmp_path)


OTHER_KINDS = {
    "text": (b"hello\nworld\n", "unknown format"),
    "table": (b"Idx,SeqId\n1,2\n", "unknown format"),
    "json object": (b'{"deviceProperties": []}', "without traceEvents"),
    "json": (b"[1, 2, 3]", "without events"),
    "gzip": (b"\x1f\x8b" + bytes(100), "compressed"),
    "zeros": (bytes(5000), "zeros instead of a header"),
    "blank": (b"\n" * 5000, "expected"),
    "random": (random.Random(1).randbytes(10_000), "unknown format"),
    "utf-16": ("ÿ".encode("utf-16"), "unknown format"),
    "half a magic": (b"SQLite format 3", "unknown format"),
    "magic": (b"SQLite format 3\0", "export it again"),
    "magic and zeros": (b"SQLite format 3\0" + bytes(84), "export it again"),
    "magic and random": (
        b"SQLite format 3\0" + random.Random(2).randbytes(10_000),
        "export it again",
    ),
}


@pytest.mark.parametrize("words", [["parse"], ["prof", "--csv"]])
def test_a_file_of_another_kind_is_named(words, tmp_path):
    contents = {name: content for name, (content, _) in OTHER_KINDS.items()}
    for name, (code, message, _) in run_many(contents, tmp_path, words).items():
        assert code == 1, name
        assert OTHER_KINDS[name][1] in message, name
        assert "x.sqlite" in message


@pytest.mark.parametrize(
    ("statement", "messages"),
    [
        ("CREATE TABLE recipes (a, b)", ("no table StringIds", "recipes")),
        ("CREATE TABLE StringIds (a, b)", ("StringIds",)),
        ("CREATE VIEW StringIds AS SELECT 1", ("StringIds",)),
        ("PRAGMA user_version = 1", ("no tables",)),
        ('CREATE TABLE "a""; DROP TABLE x; \n --\'" (b)', ()),  # a name, and nothing else
    ],
)
def test_a_database_of_something_else_is_named_with_its_tables(statement, messages, file, tmp_path):
    execute(file, statement)
    message = refusal(file, tmp_path)
    assert [each for each in messages if each not in message] == []


def test_a_trace_on_standard_input_is_refused(file):
    content = Export().kernel(0, 1, corr=1).write(file).read_bytes()
    assert "standard input" in one_line(run("prof", stdin=content))


# Damaged exports.


def run_many(cases, tmp_path, before_file=("parse",)):
    """Write each content, run a command on it, and check the properties common to all outcomes.

    Returns name -> (exit code, stderr, the lines written) for cases of name -> content.
    """
    folder = tmp_path / "many"
    folder.mkdir(exist_ok=True)
    outcomes, wrong = {}, {}
    for name, content in cases.items():
        here = folder / name
        here.mkdir()
        (here / "x.sqlite").write_bytes(content)
        before = state_of(here)
        done = run(*before_file, here / "x.sqlite", "-o", here / "out", cwd=folder)
        code, message = done.returncode, done.stderr.decode()
        lines = None
        if (here / "out").exists():
            lines = (here / "out").read_text().splitlines()
            (here / "out").unlink()
        fine = [
            code in (0, 1),
            (lines is not None) == (code == 0),
            done.stdout == b"",
            "Traceback" not in message,
            code == 0 or message.count("\n") == 1,
            code == 1 or "Found" in message,
            state_of(here) == before,
        ]
        if not all(fine):
            wrong[name] = (code, fine, message.splitlines()[-1:])
        outcomes[name] = (code, message, lines)
        shutil.rmtree(here)
    assert wrong == {}
    return outcomes


def export_of_many_pages(path) -> Path:
    """An export whose tables have several pages and some overflow pages."""
    export = Export().gpu()
    for i in range(60):
        at = 1000 * i
        long = f"long {i}" + "x" * 1500 if i % 20 == 0 else f"range {i}"
        export.push_pop(at, at + 900, long, tid=1)
        export.push_pop(at + 10, at + 800, f"aten::mul, seq = {i}", tid=1, registered=i % 2 > 0)
        export.launch(at + 20, at + 30, corr=i, tid=1)
        export.kernel(at + 40, at + 90, corr=i, name=f"k{i % 30}", demangled=f"k{i % 30}<float>()")
        if i % 3 == 0:
            export.graph_trace(at + 95, at + 99, corr=i, graph=i)
    return export.write(path, page_size=1024)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return export_of_many_pages(tmp_path_factory.mktemp("whole") / "x.sqlite").read_bytes()


@pytest.fixture(scope="module")
def expected_lines(tmp_path_factory, whole):
    path = tmp_path_factory.mktemp("expected")
    ((code, _, lines),) = run_many({"whole": whole}, path).values()
    assert (code, len(lines)) == (0, 80)
    return lines


def test_an_export_cut_short_is_refused_or_lacks_nothing(whole, expected_lines, tmp_path):
    size = len(whole)
    lengths = {1, 15, 16, 17, 50, 99, 100, 101, 511, 512, 1023, 1024, 1025, 2048, 3000}
    lengths |= {size - 1, size - 1023, size - 1024, size - 1025, size - 2048}
    lengths |= set(range(4096, size, size // 20))
    outcomes = run_many({str(n): whole[:n] for n in sorted(lengths)}, tmp_path)
    assert {
        name: code
        for name, (code, _, lines) in outcomes.items()
        if code == 0 and lines != expected_lines
    } == {}
    assert sum(code for code, _, _ in outcomes.values()) > 20
    assert all("x.sqlite" in message for code, message, _ in outcomes.values() if code)


KINDS_OF_DAMAGE = ["ones", "zeros", "random", "another page"]


@pytest.mark.parametrize("damage", KINDS_OF_DAMAGE)
def test_a_damaged_page_is_refused_or_takes_no_rows(damage, whole, expected_lines, tmp_path):
    generator = random.Random(7)
    pages = [whole[at : at + 1024] for at in range(0, len(whole), 1024)]
    filling = {
        "ones": lambda: b"\xff" * 1024,
        "zeros": lambda: bytes(1024),
        "random": lambda: generator.randbytes(1024),
        "another page": lambda: generator.choice(pages),
    }[damage]
    assert len(pages) > 35
    cases = {}
    for number in range(KINDS_OF_DAMAGE.index(damage) % SHARE, len(pages), SHARE):
        cases[str(number)] = b"".join([*pages[:number], filling(), *pages[number + 1 :]])
    outcomes = run_many(cases, tmp_path)
    if damage != "another page":
        short = {
            name: len(lines)
            for name, (code, message, lines) in outcomes.items()
            if code == 0 and len(lines) != len(expected_lines) and "warning" not in message
        }
        assert short == {}
        assert sum(code for code, _, _ in outcomes.values()) > len(cases) // 2


def test_single_damaged_bytes_end_in_rows_or_in_one_line(whole, tmp_path):
    generator = random.Random(11)
    cases = {}
    for i in range(100 // SHARE):
        content = bytearray(whole)
        # Half of them at critical places: the header, the schema and page headers.
        for _ in range(1 + i % 3):
            page = generator.randrange(len(whole) // 1024) * 1024
            within = generator.randrange(16) if i % 2 else generator.randrange(1024)
            content[page + within] = generator.randrange(256)
        cases[str(i)] = bytes(content)
    run_many(cases, tmp_path)


def test_a_zeroed_header_is_called_damage(whole, file, tmp_path):
    file.write_bytes(bytes(100) + whole[100:])
    message = refusal(file, tmp_path)
    assert "damaged" in message
    assert "nsys export" in message


def test_a_table_without_a_row_id_is_read_or_refused(file, tmp_path):
    export = Export().launch(0, 1, corr=1, tid=1).kernel(2, 3, corr=1)
    export.write(file)
    execute(
        file,
        "CREATE TABLE other (id INTEGER PRIMARY KEY, value TEXT) WITHOUT ROWID",
        "INSERT INTO other SELECT * FROM StringIds",
        "DROP TABLE StringIds",
        "ALTER TABLE other RENAME TO StringIds",
    )
    ((code, message, _),) = run_many({"a": file.read_bytes()}, tmp_path).values()
    assert (code, message.count("\n")) in [(0, 1), (1, 1)]


# Exports with invalid values: every kernel keeps its row.


def lines_of(path, count=1, warnings=0):
    """The dict lines of an export with invalid values."""
    before = state_of(path.parent)
    done = run("parse", path)
    message = done.stderr.decode()
    assert done.returncode == 0, message
    assert message.count("warning") == warnings, message
    assert message.count("\n") == 1 + warnings, message
    assert state_of(path.parent) == before
    lines = [ast.literal_eval(line) for line in done.stdout.decode().splitlines()]
    assert len(lines) == count
    prof = run("prof", "--csv", path)
    assert prof.returncode == 0
    assert len(list(csv.reader(prof.stdout.decode().splitlines()))) >= count + 1
    return lines


def one_kernel(*texts):
    export = Export().nest(0, 100, *texts)
    return export.launch(40, 41, corr=1, tid=1).kernel(50, 60, corr=1, name="k")


def test_a_name_id_without_a_string_prints_as_na_with_a_warning(file):
    one_kernel("layer:a").kernel(70, 80, corr=9, name="lost").write(file)
    execute(file, "DELETE FROM StringIds WHERE value = 'lost'")
    first, second = lines_of(file, 2, warnings=1)
    assert (first["kShortName"], second["kShortName"]) == ("k", None)
    assert second["kDuration"] == 10
    assert run("prof", "-c", "kernel", file).stdout == b"Kernel\nk\nna\n"


def test_a_range_whose_text_is_lost_says_nothing(file):
    one_kernel().push_pop(0, 100, "layer:a", tid=1, registered=True).write(file)
    execute(file, "DELETE FROM StringIds WHERE value = 'layer:a'")
    assert lines_of(file)[0]["layer"] == []


def test_a_null_string_prints_as_na(file):
    one_kernel().write(file)
    execute(
        file,
        "CREATE TABLE other (id INTEGER, value TEXT)",
        "INSERT INTO other SELECT id, NULL FROM StringIds",
        "DROP TABLE StringIds",
        "ALTER TABLE other RENAME TO StringIds",
    )
    assert lines_of(file, warnings=1)[0]["kShortName"] is None


@pytest.mark.parametrize(
    "words",
    [
        ["parse"],
        ["parse", "--format", "jsonl"],
        ["prof"],
        ["prof", "-w", "150"],
        ["prof", "--json"],
    ],
)
def test_text_that_is_not_utf8_takes_no_row_and_is_written_as_utf8(words, tmp_path):
    cases = {}
    for text in ("FF", "61FF62", "C328", "EDA080", "F0288CBC", "6100"):
        path = one_kernel("layer:a", "b").write(tmp_path / "x.sqlite")
        layer = f"CAST(x'6C617965723A{text}' AS TEXT)"
        execute(
            path,
            f"UPDATE {RANGES} SET text = {layer} WHERE text = 'layer:a'",
            f"UPDATE StringIds SET value = CAST(x'{text}' AS TEXT) WHERE value = 'k'",
        )
        cases[text] = path.read_bytes()
        path.unlink()
    header = words[0] == "prof" and "--json" not in words
    for name, (code, _, lines) in run_many(cases, tmp_path, words).items():
        assert (code, len(lines)) == (0, 1 + header), name
        if words == ["parse"]:
            assert len(ast.literal_eval(lines[0])["layer"]) == 1


NOT_LITERAL = [
    "{'mod': 'torch', 'op': 'mm', 'args': [}",
    "{'mod': 'torch', 'op': 'mm', 'args': [1, 2]",
    "{'mod': __import__('os').system('touch pwned'), 'op': 'mm', 'args': []}",
    "{'mod': 'torch', 'op': open('pwned', 'w').name, 'args': []}",
    "{'traceMarker': [__import__('os').system('touch pwned')]}",
    "{'mod': 'x', 'strRepr': (lambda: open('pwned', 'w'))()}",
    "{'mod': 'torch', 'op': 'mm', 'args': [{'name': '', 'type': 'tensor', 'shape': (1e999,)}]}",
    "{'mod': 'torch', 'op': 'mm', 'args': [{'type': 'tensor', 'shape': 'x', 'dtype': 3}]}",
    "{'mod': 'torch', 'op': 'linear', 'args': [{'type': 'tensor', 'shape': (-1, 2)}]}",
    "{'mod': 'torch', 'op': 'linear', 'args': [{'type': 'tensor', 'shape': (9" + "9" * 50 + ",)}]}",
    "{'mod': 'torch', 'op': 'mm', 'args': [" + "{'type': 'tensor', 'shape': (4294967296, "
    "4294967296), 'dtype': 'float32'}, " * 2 + "]}",
    "aten::mm, seq = 99999999999999999999999, op_id = 1",
    "aten::mm, seq = -1, op_id = 1",
    "aten::mm, seq = 1, sizes = [[99999999999999999999, 2]]",
    "aten::mm, seq = 1, sizes = [[9223372036854775807, 9223372036854775807], [9223372036854775807, "
    "9223372036854775807]]",
    "aten::mm, seq = 9223372036854775807, op_id = 9223372036854775807",
    ", seq = 1, op_id = 2",
    ", seq = 1",
    "layer:",
    "",
    "\n\r\t\x00\x1b[31m",
]


def test_a_marker_that_does_not_parse_takes_no_row_and_is_not_executed(tmp_path):
    cases = {}
    for i, text in enumerate(NOT_LITERAL):
        path = one_kernel("layer:a", text).write(tmp_path / "x.sqlite")
        cases[str(i)] = path.read_bytes()
        path.unlink()
    words = ["prof", "--csv", "-c", "layer,kernel,sil"]
    for name, (code, _, lines) in run_many(cases, tmp_path, words).items():
        assert (code, lines) == (0, ['"Layer","Kernel","Sil(ns)"', '"a","k","10"']), name
    assert os.listdir(tmp_path) == ["many"]
    assert os.listdir(tmp_path / "many") == []


N = 10**6 if IS_FULL else 10**5  # characters
LONG = {
    "text": "x" * N,
    "layer": "layer:" + "x" * N,
    "torch": "aten::" + "x" * N + ", seq = 1, op_id = 2",
    "quotes": "'\"\\" * (N // 3),
    "brackets": "{'mod': " + "[" * N,
    "closed brackets": "{'mod': " + "[" * (N // 2) + "]" * (N // 2 - 1000) + "}",
    "signs": "{'mod': " + "-" * N + "1}",
    "sum": "{'mod': " + "1+" * (N // 2) + "1}",
    "calls": "{'mod': f" + "()" * (N // 2) + "}",
    "attributes": "{'mod': x" + ".a" * (N // 2) + "}",
    "functions": "{'mod': " + "lambda:" * (N // 8) + "1}",
    "negations": "{'mod': " + "not " * (N // 4) + "1}",
    "sizes": "aten::cat, seq = 1, sizes = [" + ", ".join(["[1, 2]"] * (N // 8)) + "]",
    "no sizes": "aten::cat, seq = 1, sizes = [" + ", ".join(["[1, 2]"] * (N // 8)) + ", [x]]",
    "numbers": "aten::cat, seq = " + "1" * N,
    "arguments": "{'mod': 'torch', 'op': 'cat', 'args': ["
    + "{'name': '', 'type': 'tensor', 'shape': (2,), 'dtype': 'float32'}, " * (N // 80)
    + "]}",
}


def test_long_range_names_take_no_row(tmp_path):
    cases = {}
    for name, text in LONG.items():
        path = one_kernel("layer:a", text).write(tmp_path / "x.sqlite")
        cases[name] = path.read_bytes()
        path.unlink()
    outcomes = run_many(cases, tmp_path)
    rows = {name: (code, len(lines or ())) for name, (code, _, lines) in outcomes.items()}
    assert rows == dict.fromkeys(LONG, (0, 1))


def test_a_range_name_of_a_million_characters_is_shown_whole(file):
    one_kernel("layer:" + "x" * 10**6).write(file)
    assert lines_of(file)[0]["layer"] == ["x" * 10**6]


EXTREMES = [-(2**63), -(2**31) - 1, -1, 0, 2**31, 2**63 - 1]
NUMBERS = {
    KERNELS: ["start", "end", "deviceId", "streamId", "correlationId", "globalPid", "gridX",
              "blockZ", "demangledName", "shortName", "registersPerThread", "staticSharedMemory",
              "graphNodeId"],
    CALLS: ["start", "end", "globalTid", "correlationId", "nameId"],
    RANGES: ["start", "end", "globalTid", "eventType", "textId", "endGlobalTid"],
    "StringIds": ["id"],
}  # fmt: skip


def test_extreme_numbers_end_in_rows_or_in_one_line(tmp_path):
    path = tmp_path / "x.sqlite"
    export = one_kernel("layer:a", "aten::mul, seq = 4").kernel(70, 80, corr=2)
    export.start_end(0, 100, "phase", tid=1, end_tid=2).graph_node_event(1, 2, tid=1, node=5)
    plain = export.write(path).read_bytes()
    cases = {}
    for table, columns in NUMBERS.items():
        for i, column in enumerate(columns):
            for value in EXTREMES[i % SHARE :: SHARE]:
                path.write_bytes(plain)
                first = f"(SELECT min(rowid) FROM {table})"
                change = f"UPDATE OR REPLACE {table} SET {column} = {value}"
                execute(path, f"{change} WHERE rowid = {first}")
                cases[f"{table}.{column}={value}"] = path.read_bytes()
    outcomes = run_many(cases, tmp_path)
    assert {
        name: len(lines)
        for name, (code, _, lines) in outcomes.items()
        if not code and len(lines) != 2
    } == {}
    assert {name for name, (_, message, _) in outcomes.items() if "GPU time -" in message} == set()


def test_a_duration_that_does_not_fit_is_not_another_one(file):
    one_kernel().write(file)
    execute(file, f"UPDATE {KERNELS} SET start = {-(2**63)}, end = {2**63 - 1}")
    done = run("prof", "-c", "sil", file)
    assert (done.returncode, done.stdout) in [(0, b"Sil(ns)\nna\n"), (1, b"")]


def test_times_whose_sum_does_not_fit_give_no_negative_sum(file):
    export = Export()
    for i in range(4):
        export.kernel(i, 2**62 + i, corr=i)
    done = run("prof", "-c", "sil", export.write(file))
    assert done.returncode == 0
    assert b"-" not in done.stderr


OTHER_TYPES = ["'text'", "1.5", "1e300", "x'00FF'", "''", "9e18"]


@pytest.mark.parametrize("value", OTHER_TYPES)
def test_values_of_another_type_end_in_rows_or_in_one_line(value, tmp_path):
    path = tmp_path / "x.sqlite"
    plain = one_kernel("layer:a").write(path).read_bytes()
    cases = {}
    for table, columns in {**NUMBERS, RANGES: [*NUMBERS[RANGES], "text"]}.items():
        chosen = columns if table != "StringIds" else ["value"]
        first = OTHER_TYPES.index(value) % SHARE if len(chosen) > 1 else 0
        for column in chosen[first::SHARE]:
            path.write_bytes(plain)
            execute(path, f"UPDATE {table} SET {column} = {value}")
            cases[f"{table}.{column}"] = path.read_bytes()
    outcomes = run_many(cases, tmp_path)
    assert {
        name for name, (code, _, lines) in outcomes.items() if not code and len(lines) != 1
    } == set()


# Outputs that cannot be written.

EVERY_OUTPUT = [["parse"], ["parse", "--format", "jsonl"], ["prof", "--csv"], ["prof", "-w", "150"]]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return one_kernel("layer:a").write(tmp_path_factory.mktemp("source") / "x.sqlite")


def test_parquet_that_cannot_be_made_is_one_line(source, tmp_path):
    pytest.importorskip("pyarrow")
    for out in (tmp_path / "missing" / "out", "/dev/full"):
        done = run("parse", source, "--format", "parquet", "-o", out)
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr
        assert done.stderr.count(b"\n") <= 2
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_to_a_read_only_directory_is_one_line(source, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    done = run("parse", source, "-o", tmp_path / "locked" / "out")
    assert done.returncode == 1
    assert b"denied" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", EVERY_OUTPUT)
def test_a_full_disk_is_one_line(words, source):
    with open("/dev/full", "wb") as full:
        to_stdout = run(*words, source, stdout=full)
    for done in (to_stdout, run(*words, source, "-o", "/dev/full")):
        messages = done.stderr.decode().splitlines()
        assert done.returncode == 1
        assert len(messages) <= 2
        assert "No space left" in messages[-1]
        assert messages[-1].startswith("fastprof: ")


# Interruptions.


def test_an_interruption_while_waiting_for_input_is_one_line():
    process = subprocess.Popen(
        command("prof"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(DICT_LINE.encode())
    process.stdin.flush()
    wait_for(lambda: not unread_bytes(process.stdin))
    process.send_signal(signal.SIGINT)
    # The pipe stays open: only the signal can end it.
    process.wait(timeout=PATIENCE)
    output, message = process.communicate(timeout=PATIENCE)
    assert process.returncode in (130, -signal.SIGINT), message
    assert output == b""
    assert [line for line in message.splitlines() if line] == [b"fastprof: interrupted"]


def unread_bytes(pipe):
    """The number of unread bytes in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


# Dict lines.


def dict_refusal(content, tmp_path):
    """Errors of prof on dict lines, from a file and from standard input."""
    path = tmp_path / "net.dict"
    path.write_bytes(content)
    before = state_of(tmp_path)
    from_file = one_line(run("prof", path, cwd=tmp_path))
    from_stdin = one_line(run("prof", "-o", tmp_path / "out", stdin=content, cwd=tmp_path))
    assert state_of(tmp_path) == before
    assert from_stdin.startswith("fastprof: standard input: ")
    return from_file


CODE = "__import__('os').system('touch pwned')"


DAMAGED_LINES = [
    "{'kShortName': 'a'",
    "{'kShortName': 'a', 'kDuration': 'x'}",
    "{'kShortName': 'a', 'kDuration': }",
    "{'kShortName': 'a', 'kDuration': 99999999999999999999}",
    "{'kShortName': 'a', 'grid': (1, 2)}",
    "no dict line",
    "ERROR: no such table",
    "{'kShortName': " + CODE + "}",
    "{'op': [" + CODE + "]}",
    "{'op': " + CODE + "}",
    "{'kDuration': " + CODE + "}",
    "{" + CODE + ": 1}",
    "{'layer': [f'{" + CODE + "}']}",
    "{'layer': " + "[" * 100_000 + "}",
    "{'layer': " + "[" * 100_000 + "]" * 100_000 + "}",
    "{'new': " + "(" * 100_000 + ")" * 100_000 + "}",
    "{'layer': [" + "-" * 100_000 + "1]}",
    "{'layer': ['a'" + " + 'a'" * 100_000 + "]}",
    "{'layer': ['a" + "\\" + "']}",
    "{'layer': ['\\N{no such letter}']}",
    "{'layer': ['\\xZZ']}",
    "\x00\x01\x02",
    "{'kShortName': 'a\x00b', 'kDuration': nan}",
]


def test_a_damaged_dict_line_is_named_and_never_executed(tmp_path):
    cases = {
        str(i): (DICT_LINE * 2 + line + "\n" + DICT_LINE).encode()
        for i, line in enumerate(DAMAGED_LINES)
    }
    outcomes = run_many(cases, tmp_path, ["prof", "--csv"])
    assert {
        DAMAGED_LINES[int(name)][:50]: message
        for name, (code, message, _) in outcomes.items()
        if code != 1 or "x.sqlite: line 3: " not in message
    } == {}
    assert os.listdir(tmp_path / "many") == []


def test_damaged_dict_lines_on_standard_input_are_named(tmp_path):
    assert "net.dict: line 2: " in dict_refusal(f"{DICT_LINE}{{'op': [{CODE}]}}".encode(), tmp_path)


def test_code_under_a_key_that_nobody_asked_for_is_not_executed(tmp_path):
    content = DICT_LINE + "{'new': " + CODE + "}\n"
    done = run("prof", "-c", "idx", stdin=content.encode(), cwd=tmp_path)
    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


def test_binary_after_dict_lines_is_refused(tmp_path):
    cases = {
        str(seed): DICT_LINE.encode() + random.Random(seed).randbytes(5000) for seed in range(9)
    }
    for code, message, _ in run_many(cases, tmp_path, ["prof"]).values():
        assert (code, "x.sqlite: line 2: " in message) == (1, True)


def test_a_dict_file_cut_short_is_refused(tmp_path):
    length = len(DICT_LINE)
    cuts = {40, length - 2, *range(length + 1, 2 * length - 2, 25)}
    cases = {str(cut): (DICT_LINE * 2)[:cut].encode() for cut in cuts}
    for name, (code, message, _) in run_many(cases, tmp_path, ["prof"]).items():
        assert (code, "line" in message) == (1, True), name


def test_binary_on_standard_input_is_refused():
    for content in (random.Random(5).randbytes(10_000), bytes(10_000), b"\x1f\x8b\x08" * 99):
        assert "standard input: line 1: " in one_line(run("prof", stdin=content))


def test_parse_of_dict_lines_gives_dict_lines(tmp_path):
    path = tmp_path / "net.dict"
    path.write_text(DICT_LINE * 2)
    done = run("parse", path)
    assert done.returncode in (0, 1)
    assert done.stderr.count(b"\n") == 1
    if done.returncode == 0:
        first = ast.literal_eval(done.stdout.decode().splitlines()[0])
        assert (first["kShortName"], first["layer"]) == ("mm", ["a"])


def test_markers_of_dict_lines_are_not_executed(tmp_path):
    cases = {}
    for i, text in enumerate(NOT_LITERAL):
        line = {key: [] for key in ("layer", "trace", "reprMarkers", "mod", "op")}
        line |= {"kShortName": "k", "kDuration": 1, "marker": [text], "seqMarker": [text]}
        cases[str(i)] = (repr(line) + "\n").encode()
    for name, (code, _, lines) in run_many(cases, tmp_path, ["prof", "-c", "kernel"]).items():
        assert (code, lines) == (0, ["Kernel", "k"]), name
    assert os.listdir(tmp_path / "many") == []
