"""Measure the HTML page of an export: its size, and how soon Chromium has drawn it.

Ready: from the start of the navigation until all charts and tables are drawn; the median of the
repetitions, each in a new context.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path

import fastprof

HELP = "measure size and readiness of the HTML page"
MEGABYTES_AT_MOST, SECONDS_AT_MOST = 3.0, 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exports", metavar="EXPORT", type=Path, nargs="+")
    parser.add_argument("--repeat", metavar="N", type=int, default=5)


def run(options: argparse.Namespace) -> int:
    print("page(MB)  ready(s)  kernels  export")
    is_met = True
    for export in options.exports:
        profile = fastprof.open(export, copies=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.html")
            profile.report().save(path)
            megabytes = path.stat().st_size / 1e6
            seconds = statistics.median(ready(path, options.repeat))
        print(f"{megabytes:8.2f}  {seconds:8.2f}  {len(profile):7}  {export}")
        is_met &= megabytes <= MEGABYTES_AT_MOST and seconds <= SECONDS_AT_MOST
    print(
        f"targets: {MEGABYTES_AT_MOST:g} MB, {SECONDS_AT_MOST:g} s: {'met' if is_met else 'MISSED'}"
    )
    return 0


def ready(path: Path, repeat: int) -> list[float]:
    """Seconds until the page is drawn, for each repetition."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("FASTPROF_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        result = []
        for _ in range(repeat):
            context = browser.new_context(offline=True, viewport={"width": 1600, "height": 1000})
            page = context.new_page()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            mark = "performance.getEntriesByName('ready')[0].startTime"
            result.append(page.evaluate(mark) / 1000)
            context.close()
        browser.close()
    return result
