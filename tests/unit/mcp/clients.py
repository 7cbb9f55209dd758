"""Clients of the SDK: of a server in this process, of `fastprof mcp` over stdio, and over HTTP."""

import asyncio
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the SDK is not installed: pip install '.[mcp]'")

from mcp import Client, StdioServerParameters, stdio_client

from fastprof.mcp.paths import AllowedFiles
from fastprof.mcp.server import server_of
from fastprof.mcp.session import OpenProfiles
from support.commands import command
from support.waiting import PATIENCE

Talk = Callable[[Client], Awaitable[Any]]


def profiles_of(folder: Path, budget: float = 1e12, used: Callable[[], float] | None = None):
    """The open profiles of the files of a folder."""
    return OpenProfiles(AllowedFiles([folder]), budget, used)


def talk_here(folder: Path, talk: Talk, timeout: float = PATIENCE) -> Any:
    """What a client returns of a server in this process."""

    async def run() -> Any:
        async with Client(server_of(profiles_of(folder), timeout)) as client:
            return await talk(client)

    return asyncio.run(run())


def talk_over_stdio(folder: Path, talk: Talk, mode: str = "auto") -> Any:
    """What a client returns of `fastprof mcp`, which it starts.

    mode : "legacy" for the protocol of 2025
    """
    program, *arguments = command("mcp", folder)
    parameters = StdioServerParameters(command=program, args=arguments)

    async def run() -> Any:
        async with Client(stdio_client(parameters), mode=mode) as client:
            return await talk(client)

    return asyncio.run(run())


def called(folder: Path, name: str, /, **arguments: Any) -> Any:
    """The result of one call of a server in this process."""
    return talk_here(folder, lambda client: client.call_tool(name, arguments))


def failure(result: Any) -> str:
    """The message of a call that failed."""
    assert result.is_error, result.content[0].text
    return result.content[0].text


@contextmanager
def over_http(folder: Path) -> Iterator[str]:
    """The address of `fastprof mcp --http`, which is interrupted in the end."""
    words = command("mcp", folder, "--http", "127.0.0.1:0")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.search(r"http://\S+", line)
            assert match, line
            yield match[0]
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


def talk_over_http(address: str, *talks: Talk) -> list[Any]:
    """What several clients of one server return that talk at the same time."""

    async def one(talk: Talk) -> Any:
        async with Client(address) as client:
            return await talk(client)

    async def run() -> list[Any]:
        return await asyncio.gather(*map(one, talks))

    return asyncio.run(run())
