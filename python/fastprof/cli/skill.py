"""`fastprof skill`: print what an assistant needs to know to use fastprof."""

from __future__ import annotations

import argparse
from pathlib import Path

from fastprof.cli.output import output

NAME = "skill"
HELP = "print a skill for assistants: when to use which command, and how to read it"
DESCRIPTION = """\
Print a skill for assistants, in the format SKILL.md: when to use which command, how to read what is
printed, and what not to conclude.

  fastprof skill
  fastprof skill > SKILL.md
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: there are none."""


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    path = Path(__file__).parents[1] / "skills" / "fastprof" / "SKILL.md"
    with output(None) as file:
        file.write(path.read_bytes())
    return 0
