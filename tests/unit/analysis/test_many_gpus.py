"""Files of very many GPUs: values and pages are of the largest, and tell of the others."""

import pytest

import fastprof
from fastprof.analysis.gpu_work import MOST_GPUS
from fastprof.page import page_of
from fuzz.many_units import write

N = MOST_GPUS + 100


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> fastprof.Profile:
    return fastprof.open(write("kineto/devices", N, tmp_path_factory.mktemp("many")))


@pytest.mark.parametrize("report", ["idle", "overlap"])
def test_values_of_gpus_are_of_the_largest_with_the_sums_of_the_others(many, report):
    facts = many.report(report).facts
    assert len(facts["gpus"]) == MOST_GPUS
    assert facts["more_gpus"]["gpus"] == N - MOST_GPUS
    whole = sum(each["span_ns"] for each in facts["gpus"]) + facts["more_gpus"]["span_ns"]
    assert whole == N * 15_000  # a kernel each


def test_lengths_of_steps_are_of_the_busiest_gpus(many):
    table = many.report("steps")
    assert len(table.facts["lengths"]) == MOST_GPUS
    assert table.facts["more_gpus"] == {"gpus": N - MOST_GPUS}
    assert f"... {N - 8} more GPUs" in table.lead
    assert table.n_rows == 4 * N


def test_a_page_has_the_steps_of_some_gpus(many):
    text = page_of(many).html
    assert f"The page has the 100 busiest of {N:,} GPUs; busy time of the other 1,000: " in text


def test_few_gpus_are_all_shown(tmp_path):
    few = fastprof.open(write("kineto/devices", 12, tmp_path))
    assert len(few.report("idle").facts["gpus"]) == 12
    assert "more_gpus" not in [*few.report("idle").facts, *few.report("steps").facts]
