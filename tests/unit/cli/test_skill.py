"""The skill for assistants."""

import re

from fastprof.cli import parser
from support.commands import run
from support.every_command import commands


def skill() -> str:
    return run("skill").stdout.decode()


def test_it_is_short_and_has_a_front_matter():
    text = skill()
    assert re.match(r"---\nname: fastprof\ndescription: .{40,400}?\n---\n", text, re.DOTALL)
    assert len(text.splitlines()) < 150


def test_commands_that_it_names_exist():
    named = set(re.findall(r"`(?:fastprof )?([a-z]+)(?: [A-Z-][^`]*)?`", skill()))
    known = {*commands(), "info", "guide"}
    words = {"na", "null", "at", "start", "gpu", "step", "busy", "roof", "saves", "kind", "op"}
    assert named - known - words - {"mcp", "offset", "limit"} == set()


def test_it_takes_no_arguments():
    assert run("skill", "x").returncode == 2
    assert parser(["skill"])
