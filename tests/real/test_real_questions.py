"""Questions of people to real traces: what the tools of `fastprof mcp` answer, by the raw file."""

from typing import Any

import jsonschema
import pytest

from fastprof.mcp.answer import LINES
from fastprof.mcp.paths import AllowedFiles
from fastprof.mcp.session import Job, OpenProfiles
from fastprof.mcp.tools import all_tools
from real.open_traces import kept
from real.questions import QUESTIONS, Question
from support.real_data import data_dir, real

TOOLS = all_tools()


@kept
def profiles() -> OpenProfiles:
    """The open profiles of the real traces."""
    directory = data_dir()
    assert directory is not None
    return OpenProfiles(AllowedFiles([directory]), 1e12)


def asked(name: str, arguments: dict[str, Any], trace: str) -> dict[str, Any]:
    """The values of a call, whose arguments, values and text are as the tool declares them."""
    tool = TOOLS[name]
    given = {key: value for key, value in arguments.items() if value is not None}
    if name not in ("diff", "ranks", "guide"):
        given = {"file": trace, **given}
    jsonschema.validate(given, tool.arguments)
    answer = tool.run(profiles(), given, Job())
    jsonschema.validate(answer.values, tool.result)
    assert 0 < len(answer.text.splitlines()) <= LINES
    return answer.values


@pytest.mark.parametrize(
    "question", QUESTIONS, ids=lambda question: f"{question.trace}-{question.text}"
)
def test_at_most_two_calls_answer_a_question(question: Question) -> None:
    real(question.trace)
    name, arguments, *more = question.calls
    answers = [asked(name, arguments, question.trace)]
    if more:
        name, make = more
        answers.append(asked(name, make(answers), question.trace))
    assert question.answer(answers) == question.expected(question.trace)


def test_the_questions_are_many_and_of_six_groups() -> None:
    groups = {question.group for question in QUESTIONS}
    assert len(QUESTIONS) >= 50 and len(groups) == 6
    assert len({question.trace for question in QUESTIONS}) >= 8
