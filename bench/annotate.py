"""Measure what annotation adds to torch calls, module calls, and training steps under a profiler.

Needs torch and nvtx. Each situation runs in its own process (`annotated_calls`, `annotated_steps`),
where the contenders take turns. The attached NVTX tool is that of the tests; it records every call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import annotated_run
from bench.machine import describe, package_version

ROOT = Path(__file__).resolve().parents[1]
# Targets: microseconds per call above the plain call.
AT_MOST = {("no tool attached", "fastprof"): 0.3, ("tool attached", "fastprof"): 8.0}
HELP = "measure the overhead of annotation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=int, default=9, help="measurements of each contender (default 9)"
    )
    parser.add_argument(
        "--seconds", type=float, default=20, help="of the program under fastprof run (default 20)"
    )


def run(options: argparse.Namespace) -> int:
    machine = describe() | {"torch": package_version("torch"), "nvtx": package_version("nvtx")}
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print("overhead in microseconds per call, minimum of the rounds\n")
    with tempfile.TemporaryDirectory(dir=_memory()) as directory:
        for situation, environment in {
            "no tool attached": {},
            "tool attached": _attached(Path(directory)),
        }.items():
            _table(situation, _measured("annotated_calls", environment, options.rounds))
    for title, seconds in _measured("annotated_steps", {}, options.rounds).items():
        plain = seconds.pop("plain")
        print(f"{title:<26}{'us':>8}{'more':>18}{'times':>18}")
        print(f"  {'plain':<24}{1e6 * plain:>8.2f}")
        for name, result in seconds.items():
            more = 1e6 * (result - plain)
            print(f"  {name:<24}{1e6 * result:>8.2f}{more:>18.2f}{result / plain:>18.2f}")
        print()
    with tempfile.TemporaryDirectory(dir=_memory()) as directory:
        rounds = max(options.rounds // 3, 1)
        result = annotated_run.measured(rounds, options.seconds, Path(directory))
        print(annotated_run.report(result))
    return 0


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _attached(directory: Path) -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "tests"))
    from support.nvtx_recorder import attached

    return attached(directory / "log")


def _measured(
    program: str, environment: dict[str, str], rounds: int
) -> dict[str, dict[str, float]]:
    """Seconds by call and contender."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{program}", str(rounds)],
        env=os.environ | environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def _table(situation: str, seconds: dict[str, dict[str, float]]) -> None:
    contenders = [name for name in next(iter(seconds.values())) if name != "plain"]
    print(f"{situation:<26}{'plain':>8}" + "".join(f"{name:>18}" for name in contenders))
    for call, found in seconds.items():
        plain = found["plain"]
        added = "".join(f"{1e6 * (found[name] - plain):>18.2f}" for name in contenders)
        print(f"  {call:<24}{1e6 * plain:>8.2f}{added}")
    bound = AT_MOST[situation, "fastprof"]
    most = max(found["fastprof"] - found["plain"] for found in seconds.values())
    verdict = "within" if 1e6 * most <= bound else "ABOVE"
    print(f"  fastprof at most {1e6 * most:.2f}: {verdict} {bound} us")
    if "as PyProf" in contenders:
        ratios = [
            (found["as PyProf"] - found["plain"]) / (found["fastprof"] - found["plain"])
            for found in seconds.values()
        ]
        print(f"  as PyProf: {min(ratios):.0f} to {max(ratios):.0f} times the overhead")
    print()
