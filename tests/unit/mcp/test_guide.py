"""The documentation by topic."""

import pytest

from fastprof.analysis.reports import names
from fastprof.errors import BadInputError
from fastprof.mcp.answer import LINES
from fastprof.mcp.guide import guide, sections


def test_all_pages_for_users_are_there_and_small():
    pages = {section.page for section in sections()}
    assert {"guide", "reports", "columns", "agents", "messages"} <= pages
    assert not pages & {"architecture", "contributing", "design"}
    assert sum(len(section.text) for section in sections()) < 1_000_000


@pytest.mark.parametrize("topic", [None, "roof", "guide", "columns/params", "record shapes"])
def test_a_topic_is_answered_in_few_lines(topic):
    answer = guide(topic)
    assert 0 < len(answer.text.splitlines()) <= LINES


@pytest.mark.parametrize("name", names())
def test_every_report_has_a_topic(name):
    assert guide(f"reports/{name}").values["topic"] == f"reports/{name}"


def test_the_rest_of_a_section_can_be_asked_for():
    first = guide("reports/advise").values
    assert first["cut"] and first["text"].startswith("## advise")
    second = guide("reports/advise", offset=len(first["text"].splitlines())).values
    assert second["text"] and not second["text"].startswith("## advise")


def test_a_term_is_explained_as_on_the_command_line():
    assert "100 % is a kernel at the GPU's peak rate" in guide("roof").values["terms"][0]["text"]


def test_an_unknown_topic_names_the_pages():
    with pytest.raises(BadInputError, match="unknown topic 'glosary'; did you mean glossary"):
        guide("glosary")
