"""The commands that answer questions on a trace, in the form in which the fuzzer runs them."""

import json

from fastprof.analysis.reports import all_reports
from fastprof.exports.registry import FORMATS

__all__ = ["ANSWERS", "COMMANDS", "check_output", "command"]

_FILE = "FILE"


def _commands() -> list[list[str]]:
    result = [[name, "--json", _FILE] for name in sorted(all_reports())]
    result += [[name, _FILE] for name in sorted(all_reports())]
    result += [["export", "--to", name, _FILE] for name in FORMATS]
    result += [
        ["report", _FILE],
        ["diff", "--json", _FILE, _FILE],
        ["diff", "--markdown", _FILE, _FILE],
        ["summary", "--json", "--by", "layer,line,shape,phase,step", "--cpu", _FILE],
        ["idle", "--json", "--gaps", "5", _FILE],
        ["whatif", "--json", "--graph", "--no-sync", "--scale", "op=*:0.5", _FILE],
    ]
    return result


COMMANDS = _commands()
ANSWERS = {words[0] for words in COMMANDS}


def command(number: int, path: str) -> list[str]:
    """The command of a number on a file; consecutive numbers select different ones."""
    return [path if word == _FILE else word for word in COMMANDS[number % len(COMMANDS)]]


def check_output(words: list[str], output: bytes) -> str | None:
    """What is wrong with the output of a command that succeeded."""
    if not output and "collapsed" not in words:
        return "empty output"
    if "--json" in words:
        try:
            json.loads(output, parse_constant=_refuse)
        except ValueError as error:
            return f"no JSON: {error}"
    if words[0] == "report" and not output.rstrip().endswith(b"</html>"):
        return "the page is not complete"
    return None


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no JSON")
