"""Arguments of tools are the options of commands, and are converted as these."""

import jsonschema
import pytest

from fastprof.analysis.options import STEPS, WHERE
from fastprof.analysis.registry import Option, Report
from fastprof.analysis.reports import all_reports
from fastprof.errors import ReportError
from fastprof.mcp.schema import keywords, option_schemas, page_of
from fastprof.mcp.tools import all_tools

NUMBER = Option("n", "a number", "N", int, 7)
REPORT = Report("r", "", "", options=(STEPS, WHERE, NUMBER, Option("flag", "a switch")))


@pytest.mark.parametrize("name", all_tools())
def test_schemas_are_valid(name):
    tool = all_tools()[name]
    for schema in (tool.arguments, tool.result):
        jsonschema.Draft202012Validator.check_schema(schema)
    assert tool.arguments["additionalProperties"] is False
    assert all(property_.get("description") or property_.get("enum") for property_ in
               tool.arguments["properties"].values())  # fmt: skip


@pytest.mark.parametrize("name", all_reports())
def test_every_option_of_a_report_is_an_argument(name):
    options = {option.name for option in all_reports()[name].options}
    assert options - set(option_schemas(all_reports()[name])) <= {"fail_above", "source", "plot"}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"n": 3}, {"n": 3}),
        ({"n": 3.0}, {"n": 3}),
        ({"n": "3", "flag": True}, {"n": 3, "flag": True}),
        ({"where": "op=mm"}, {"where": ["op=mm"]}),
        ({"where": ["op=mm", "stream=7"]}, {"where": ["op=mm", "stream=7"]}),
        ({"step_range": "step .*"}, {"steps": "range:step .*"}),
        ({"n": None}, {}),
    ],
)
def test_values_are_converted_as_in_commands(given, made):
    assert keywords(REPORT, given) == made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"m": 3}, "unknown option of r 'm'"),
        ({"n": "x"}, "n: invalid literal"),
        ({"flag": 1}, "flag: expected true or false"),
        ({"steps": "none", "step_range": "x"}, "expected one of steps and step_range"),
        ({"steps": "range:(a+)+b"}, r"repetition within repetition, as in \(a\+\)\+"),
    ],
)
def test_invalid_values_are_errors(given, message):
    with pytest.raises(ReportError, match=message):
        keywords(REPORT, given)


def test_keys_may_be_a_list():
    report = all_reports()["summary"]
    assert keywords(report, {"by": ["op", "dir"]}) == keywords(report, {"by": "op,dir"})


def test_rows_have_the_default_of_the_tool():
    assert (
        page_of({}).limit == 20 and page_of({}, 5).limit == 5 and page_of({"limit": 7}).limit == 7
    )
