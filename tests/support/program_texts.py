"""Everything that reports and the page say of a capture, and words that are for PyTorch only."""

import html
import re

import fastprof
from fastprof.analysis.reports import all_reports
from fastprof.errors import FastprofError
from fastprof.page import page_of
from fastprof.writers.info import describe, info_text

TORCH_WORDS = re.compile(
    r"DataLoader|\btorch|annotate_layers|\.to\(device|emit_nvtx|fastprof\.init|set_to_none"
    r"|with_stack|record_shapes|profile_memory|prof\.step\(\)|async_op|\bDDP\b|FSDP"
    r"|DistributedData|non_blocking|num_workers|autocast|\.item\(\)|GradScaler|ProfilerStep"
)


def all_texts(profile: fastprof.Profile) -> str:
    """All reports with their default options, info, and the texts of the page."""
    result = [info_text(describe(profile))]
    for name in all_reports():
        try:
            result.append(profile.report(name).text(None))
        except FastprofError as error:
            result.append(str(error))
    page = re.sub(r"<(script|style).*?</\1>", "", page_of(profile).html, flags=re.DOTALL)
    return "\n".join([*result, html.unescape(re.sub("<[^>]+>", "\n", page))])
