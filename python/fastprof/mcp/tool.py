"""What a tool is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastprof._system.classes import dataclass
from fastprof.mcp.answer import ToolAnswer
from fastprof.mcp.schema import Schema
from fastprof.mcp.session import Job, OpenProfiles

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Tool:
    """A tool.

    Parameters
    ----------
    name, about : for the client
    arguments, result : JSON schemas
    run : function(profiles, arguments, work) -> Answer
    """

    name: str
    about: str
    arguments: Schema
    result: Schema
    run: Callable[[OpenProfiles, Arguments, Job], ToolAnswer]
