"""`fastprof mcp`: serve reports to assistants over the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
from typing import NoReturn

from fastprof.cli.options import add, count
from fastprof.cli.output import log

NAME = "mcp"
HELP = "serve reports to assistants: an MCP server"
DESCRIPTION = """\
Serve the traces below directories to assistants over the Model Context Protocol (MCP), on standard
input and output or, with --http, as streamable HTTP. Clients read only files below these
directories, after links are resolved. Needs the extra: pip install 'fastprof[mcp]'. docs/agents.md
says how to connect clients, and what each tool answers.

  fastprof mcp traces/
  fastprof mcp traces/ runs/ --memory 16G --timeout 600
  fastprof mcp traces/ --http 127.0.0.1:8765
"""
_TIMEOUT = 300
_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "directories", metavar="DIR", nargs="+", help="directories of traces that clients may read"
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve HTTP at /mcp, to clients that name this host, 127.0.0.1 for a port alone; port "
        "0 chooses a free one (default: standard input and output)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=count,
        default=_TIMEOUT,
        help="a call fails that takes longer (default: %(default)s)",
    )
    add(parser, "--ops")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from fastprof._system.memory import available
    from fastprof.mcp.paths import AllowedFiles
    from fastprof.mcp.server import serve
    from fastprof.mcp.session import OpenProfiles
    from fastprof.ops.user import load_file

    for path in arguments.ops:
        load_file(path)
    files = AllowedFiles(arguments.directories)
    limit, _ = available()
    # Without --memory, half of what is free: the rest is for the profile that is being read.
    budget = limit if arguments.memory is not None else limit / 2
    serve(OpenProfiles(files, budget), arguments.timeout or _TIMEOUT, arguments.http, log, _leave)
    return 0


def _leave() -> NoReturn:
    """End the program at once: it has written nothing that is to be removed."""
    log("interrupted")
    os._exit(_INTERRUPTED)
