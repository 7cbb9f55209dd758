"""The server, as clients of the SDK see it: over stdio, HTTP and in this process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from bench.generate import generate

from fastprof.errors import MissingDependencyError
from fastprof.mcp import server
from fastprof.mcp.answer import LINES, ToolAnswer
from fastprof.mcp.http import address
from fastprof.mcp.session import StoppedError
from fastprof.mcp.tool import Tool
from fastprof.mcp.tools import all_tools
from support.commands import command, one_line, run
from support.hostile_names import hostile_trace
from support.waiting import PATIENCE, wait_for
from unit.mcp.clients import (
    called,
    failure,
    over_http,
    profiles_of,
    talk_here,
    talk_over_http,
    talk_over_stdio,
)  # fmt: skip

anyio = pytest.importorskip("anyio")
NAMES = (
    *("info", "overview", "report", "find", "kernel", "advise", "whatif", "diff", "ranks"),
    "guide",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, generated):
    """Two captures."""
    folder = tmp_path_factory.mktemp("traces")
    for seed in (1, 2):
        shutil.copy(generated(1000, seed), folder / f"net{seed}.sqlite")
    return folder


CALLS = {
    "info": {"file": "net1.sqlite"},
    "overview": {"file": "net1.sqlite"},
    "report": {"file": "net1.sqlite", "name": "summary", "options": {"by": ["layer", "dir"]}},
    "find": {"file": "net1.sqlite", "where": "kind=gemm", "sort": "gpu_ns", "limit": 2},
    "kernel": {"file": "net1.sqlite", "idx": 100},
    "advise": {"file": "net1.sqlite"},
    "whatif": {"file": "net1.sqlite", "scale": ["op=linear:0.5"]},
    "diff": {"before": "net1.sqlite", "after": "net2.sqlite", "by": "op"},
    "ranks": {"paths": ["net1.sqlite", "net2.sqlite"]},
    "guide": {"topic": "roof"},
}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_answers_over_stdio(folder, mode):
    async def talk(client):
        tools = (await client.list_tools()).tools
        return tools, {name: await client.call_tool(name, CALLS[name]) for name in CALLS}

    tools, results = talk_over_stdio(folder, talk, mode)
    assert tuple(tool.name for tool in tools) == NAMES
    assert all(tool.output_schema and tool.annotations.read_only_hint for tool in tools)
    assert len(json.dumps([tool.model_dump() for tool in tools])) < 40_000
    for name, result in results.items():
        text = result.content[0].text
        if name == "ranks":  # the captures are not those of one run
            assert "rank" in text
            continue
        assert not result.is_error, text
        assert 0 < len(text.splitlines()) <= LINES, name
        json.dumps(result.structured_content, allow_nan=False)


@pytest.mark.parametrize("name", [call for call in CALLS if call not in ("ranks", "guide")])
def test_an_answer_has_the_values_of_its_command(name, folder):
    arguments = dict(CALLS[name])
    result = called(folder, name, **arguments).structured_content
    words = {
        "report": ["summary", "--by", "layer,dir"],
        "find": ["find", "--where", "kind=gemm", "--sort", "gpu_ns", "--limit", "2"],
        "kernel": ["kernel", "100"],
        "whatif": ["whatif", "--scale", "op=linear:0.5"],
        "diff": ["diff", "--by", "op", folder / "net1.sqlite"],
    }.get(name, [name])
    last = "net2.sqlite" if name == "diff" else "net1.sqlite"
    done = run(words[0], folder / last, *words[1:], "--json")
    if name == "diff":
        done = run("diff", folder / "net1.sqlite", folder / last, "--by", "op", "--json")
    elif name == "kernel":
        done = run("kernel", folder / last, "100", "--json")
    expected = json.loads(done.stdout)
    if name == "info":
        assert result["span"] == expected["span"] and result["coverage"] == expected["coverage"]
        return
    tables = expected.get("tables", {"": expected})
    for key, table in tables.items():
        own = result["tables"][key] if key else result
        assert own["total"] == table.get("total", own["total"])
        for row, whole in zip(own["rows"], table["rows"], strict=False):
            assert row.items() <= whole.items()


def test_rows_are_cut_and_the_rest_can_be_asked_for(folder):
    first = called(folder, "find", file="net1.sqlite", limit=3).structured_content
    assert [row["idx"] for row in first["rows"]] == [1, 2, 3]
    assert first["cut"].startswith("rows 1 to 3 of 1008; the next: offset=3")
    second = called(folder, "find", file="net1.sqlite", limit=2, offset=3)
    assert [row["idx"] for row in second.structured_content["rows"]] == [4, 5]
    assert second.structured_content["total"] == first["total"]
    last = called(folder, "find", file="net1.sqlite", limit=200, offset=1005).structured_content
    assert len(last["rows"]) == 3 and last["cut"].startswith("rows 1006 to 1008 of 1008")
    chosen = called(folder, "find", file="net1.sqlite", limit=1, columns=["idx", "gpu"])
    assert list(chosen.structured_content["rows"][0]) == ["idx", "gpu_ns"]
    every = called(folder, "find", file="net1.sqlite", limit=1, columns=["all"])
    assert {"name", "dir", "start"} <= every.structured_content["rows"][0].keys()


def test_options_of_a_report_may_choose_rows_as_those_of_its_command_do(folder):
    inside = {"limit": 1, "sort": "gpu_ns"}
    one = called(folder, "report", file="net1.sqlite", name="summary", options=inside)
    other = called(folder, "report", file="net1.sqlite", name="summary", **inside)
    assert one.structured_content == other.structured_content
    assert len(one.structured_content["rows"]) == 1


def test_the_smallest_come_first_if_asked_for(folder):
    arguments = {"file": "net1.sqlite", "sort": "gpu_ns", "ascending": True, "limit": 50}
    rows = called(folder, "find", **arguments).structured_content["rows"]
    times = [row["gpu_ns"] for row in rows]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("nothing", {}, "unknown tool 'nothing'; valid: info, overview"),
        ("overview", {}, "overview: 'file' is a required property"),
        ("overview", {"file": 7}, "overview: file: 7 is not of type 'string'"),
        ("overview", {"file": "net1.sqlite", "nothing": 1},
         "unknown argument of overview 'nothing'; did you mean ascending? Valid: file, steps"),
        ("report", {"file": "net1.sqlite", "name": "summary", "options": {"limit": 1_000_000}},
         "limit: 1000000 is greater than the maximum of 200"),
        ("find", {"file": "net1.sqlite", "limit": 1_000_000}, "greater than the maximum of 200"),
        ("find", {"file": "net1.sqlite", "where": ["opp=mm"]}, "unknown key 'opp'"),
        ("find", {"file": "net1.sqlite", "nth": "x"}, "expected an occurrence"),
        ("find", {"file": "net1.sqlite", "sort": "gpus"}, "unknown column 'gpus'"),
        ("find", {"file": "net1.sqlite", "after": 9999}, "there is no kernel 9999"),
        ("kernel", {"file": "net1.sqlite", "idx": [1, 2]}, "expected the number of one kernel"),
        ("report", {"file": "net1.sqlite", "name": "sum"}, "'sum' is not one of"),
        ("report", {"file": "net1.sqlite", "name": "summary", "options": {"bye": "op"}},
         "unknown option of summary 'bye'; did you mean by?"),
        ("report", {"file": "net1.sqlite", "name": "layers", "options": {"fold": "yes"}},
         "fold: expected true or false"),
        ("report", {"file": "net1.sqlite", "name": "steps", "trim": "9s:"}, "has no work"),
        ("overview", {"file": "/etc/passwd"}, "no such file below the directories"),
        ("overview", {"file": "../net1.sqlite"}, "no such file below the directories"),
        ("guide", {"topic": "zzzzz"}, "unknown topic 'zzzzz'"),
    ],
)  # fmt: skip
def test_an_error_is_a_line_that_says_what_would_be_right(name, arguments, message, folder):
    text = failure(called(folder, name, **arguments))
    assert message in text and "\n" not in text


def test_a_bug_does_not_end_the_server(folder, monkeypatch, capsys):
    def fail(*_):
        raise ZeroDivisionError

    tools = all_tools()
    monkeypatch.setattr(server, "all_tools", lambda: {**tools, "info": _with(tools["info"], fail)})

    async def talk(client):
        return [await client.call_tool("info", {}), await client.call_tool("guide", {})]

    broken, works = talk_here(folder, talk)
    assert "ZeroDivisionError, a bug in fastprof" in failure(broken)
    assert not works.is_error
    assert "ZeroDivisionError" in capsys.readouterr().err


def _with(tool, function):
    return Tool(tool.name, tool.about, tool.arguments, tool.result, function)


class _Endless:
    """A tool that reads until it is stopped."""

    def __init__(self):
        self.began, self.stopped = threading.Event(), threading.Event()

    def __call__(self, _, __, work):
        try:
            for row in range(1_000_000):
                work("rows", row, 1_000_000)
                self.began.set()
                threading.Event().wait(0.002)
        except StoppedError:
            self.stopped.set()
            raise
        return ToolAnswer({}, "never")


@pytest.fixture
def endless(monkeypatch):
    """The tool `info`, which takes for ever."""
    tool, tools = _Endless(), all_tools()
    monkeypatch.setattr(server, "all_tools", lambda: {**tools, "info": _with(tools["info"], tool)})
    return tool


def test_a_call_that_is_cancelled_stops_reading(folder, endless):
    async def talk(client):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "info", {})
            await anyio.to_thread.run_sync(wait_for, endless.began.is_set)
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(wait_for, endless.stopped.is_set)
        return await client.call_tool("guide", {})

    assert not talk_here(folder, talk).is_error


def test_a_call_that_takes_too_long_fails_and_stops(folder, endless):
    result = talk_here(folder, lambda client: client.call_tool("info", {}), timeout=0.2)
    assert "info: took longer than 0.2 s" in failure(result)
    wait_for(endless.stopped.is_set)


def test_progress_is_told_while_a_file_is_read(folder, endless, monkeypatch):
    monkeypatch.setattr(server, "_PERIOD", 0.02)
    told = []

    async def progress(done, total, message):
        told.append((done, total, message))

    async def talk(client):
        with anyio.move_on_after(PATIENCE) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(_call, client, progress)
                await anyio.to_thread.run_sync(wait_for, lambda: len(told) > 2)
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught

    talk_here(folder, talk)
    assert [done for done, *_ in told] == sorted({done for done, *_ in told})
    assert all(message.endswith("of about 1000000") for *_, message in told)


async def _call(client, progress):
    await client.call_tool("info", {}, progress_callback=progress)


def test_a_file_that_changes_is_read_again_and_one_that_is_gone_is_an_error(folder):
    path = folder / "changing.sqlite"
    generate(path, 100, 1)

    async def talk(client):
        results = [await client.call_tool("info", {"file": path.name})]
        generate(folder / "new.sqlite", 200, 1)
        os.replace(folder / "new.sqlite", path)
        results.append(await client.call_tool("info", {"file": path.name}))
        path.unlink()
        return [*results, await client.call_tool("info", {"file": path.name})]

    first, second, gone = talk_over_stdio(folder, talk)
    counts = [each.structured_content["work"]["kernel"]["count"] for each in (first, second)]
    assert counts == [100, 200]
    assert "no such file below" in failure(gone)


@pytest.fixture(scope="module")
def url(folder):
    """The address of a server over HTTP."""
    with over_http(folder) as url:
        yield url


def test_two_clients_of_one_server_over_http(url):
    async def first(client):
        return [await client.call_tool("overview", {"file": f"net{i}.sqlite"}) for i in (1, 2, 1)]

    async def second(client):
        return [await client.call_tool("find", {"file": f"net{i}.sqlite"}) for i in (2, 1, 2)]

    answers = talk_over_http(url, first, second)
    opened = talk_over_http(url, lambda client: client.call_tool("info", {}))
    assert not any(result.is_error for results in answers for result in results)
    files = opened[0].structured_content["open"]
    assert sorted(os.path.basename(path) for path in files) == ["net1.sqlite", "net2.sqlite"]


def test_http_refuses_other_hosts_and_origins(url):
    httpx = pytest.importorskip("httpx2")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for header in ({"Host": "example.org"}, {"Origin": "http://example.org"}):
        assert httpx.post(url, json=body, headers=kinds | header).status_code in (403, 421)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("localhost", "expected HOST:PORT such as 127.0.0.1:8765, or a port"),
        (":8765", "not all of them"),
        ("127.0.0.1:99999", "expected HOST:PORT"),
        ("0.0.0.0:8765", "not all of them"),
        ("[::]:8765", "not all of them"),
    ],
)
def test_an_address_that_cannot_be_served_is_one_line(text, message, folder):
    assert message in one_line(run("mcp", folder, "--http", text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8765", ("127.0.0.1", 8765)), ("localhost:0", ("localhost", 0)), ("[::1]:1", ("[::1]", 1)),
    ],
)  # fmt: skip
def test_a_port_alone_is_that_of_the_loopback_address(text, expected):
    assert address(text) == expected


def test_a_directory_that_is_missing_is_one_line(tmp_path):
    assert "expected a directory of traces" in one_line(run("mcp", tmp_path / "nothing"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_that_waits_for_its_client(number, folder):
    words = command("mcp", folder)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, **pipes) as process:
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()  # it serves
        process.send_signal(number)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read() == b"fastprof: interrupted\n"


def test_names_of_a_trace_are_data_without_control_characters(tmp_path):
    hostile_trace(tmp_path / "bad.json.gz")
    for name, arguments in CALLS.items():
        if "file" not in arguments:
            continue
        result = called(tmp_path, name, **{**arguments, "file": "bad.json.gz"} | (
            {"idx": 3} if name == "kernel" else {}
        ))  # fmt: skip
        text = result.content[0].text
        assert all(line.isprintable() for line in text.split("\n")), name
        assert len(json.dumps(result.structured_content)) < 100_000


def test_without_the_sdk_the_extra_is_named(folder, monkeypatch):
    for name in ("mcp", "mcp.server", "mcp.server.lowlevel"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"fastprof mcp needs mcp: pip install 'fast"):
        server.server_of(profiles_of(folder), 1.0)
