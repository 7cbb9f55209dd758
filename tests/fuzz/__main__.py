"""Mutate traces and dict lines, read them, and report errors: `python -m fuzz --help`."""

import argparse
import collections
import sys
import time
from pathlib import Path

from fuzz.corpus import corpus
from fuzz.mutant import Mutant, mutants, shapes
from fuzz.worker import SECONDS, Outcome, outcomes

_SLOWEST = 5


def main() -> int:
    """Run the command; the exit code is 1 if a mutant failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--mutants", type=int, default=20_000, help="how many (default: 20000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other mutants")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for any one mutant")
    parser.add_argument("--shapes", action="store_true", help="large files instead of mutants")
    parser.add_argument("--again", metavar="SEED/KIND/NUMBER", help="this one mutant only")
    parser.add_argument("--only", default="", help="mutants with this in their names only")
    parser.add_argument("-o", "--output", help="write the mutant of --again to a file, do no more")
    arguments = parser.parse_args()
    seeds = corpus()
    if arguments.again:
        chosen = [Mutant.named(arguments.again)]
        if arguments.output:
            Path(arguments.output).write_bytes(chosen[0].content(seeds))
            return 0
    elif arguments.shapes:
        chosen = shapes()
    else:
        chosen = mutants(seeds, arguments.mutants, arguments.seed)
        chosen = [mutant for mutant in chosen if arguments.only in str(mutant)]
    began, done = time.monotonic(), []
    for outcome in outcomes(chosen, seeds, arguments.jobs, arguments.seconds):
        done.append(outcome)
        if outcome.what == "wrong" or arguments.again:
            print(f"{outcome.mutant}: {outcome.what}: {outcome.detail.strip()}", flush=True)
        elif arguments.shapes:
            print(f"{outcome.mutant}: {outcome.what} in {outcome.seconds:.1f} s", flush=True)
        if len(done) % 1000 == 0:
            rate = len(done) / (time.monotonic() - began)
            print(f"{len(done)} of {len(chosen)}, {rate:.0f} a second", file=sys.stderr, flush=True)
    print(summary(done, time.monotonic() - began))
    return int(any(outcome.what == "wrong" for outcome in done))


def summary(done: list[Outcome], seconds: float) -> str:
    """Counts by kind, the slowest mutants, and the peak memory."""
    counts = collections.Counter((each.mutant.kind, each.what) for each in done)
    lines = [f"{'kind':14} {'rows':>6} {'refused':>8} {'wrong':>6}"]
    for kind in sorted({each.mutant.kind for each in done}):
        rows, refused, wrong = (counts[kind, what] for what in ("rows", "refused", "wrong"))
        lines.append(f"{kind:14} {rows:6} {refused:8} {wrong:6}")
    whats = collections.Counter(each.what for each in done)
    total = ", ".join(f"{n} {what}" for what, n in sorted(whats.items()))
    memory = max((each.memory for each in done), default=0) >> 20
    lines.append(f"{len(done)} mutants in {seconds:.0f} s: {total}; at most {memory} MB a process")
    for each in sorted(done, key=lambda each: -each.seconds)[:_SLOWEST]:
        lines.append(f"{each.seconds:6.2f} s  {each.mutant}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
