"""Write the files of a simulated run and its expected answers: python -m bench.ranks DIR."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from bench.ranks import faults, kineto, programs, truth

EPILOG = """\
faults, KIND:RANK or KIND:RANK:FIELD=VALUE,...; times in ns:
  data:3:ns=5e6,steps=1-3       the DataLoader takes longer
  gpu:2:factor=1.2,begin=2      all compute kernels take longer, from step 2 on
  rows:1:op=aten::mm,factor=2   an operator has more rows (layer=PATTERN: only there)
  calls:1:op=aten::mm,calls=1   more calls of an operator
  host:0:ns=5e6                 Python takes longer; factor=3: as do operators
  start:4:ns=2e7                a pause when the first step begins
  clock:5:offset=2e9,ppm=30     the clock of the files
  window:6:first_instances=3    first communications not recorded; last_instances; first, last in ns
  missing:7                     no file
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.ranks", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("directory", type=Path)
    parser.add_argument("--program", choices=programs.PROGRAMS, default="ddp")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", type=faults.parse, action="append", default=[], metavar="FAULT")
    parser.add_argument("--form", choices=["kineto", "nsys"], default="kineto")
    parser.add_argument("--metadata", choices=kineto.METADATA, default="full")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=NUMBER", help="of the program: blocks=8"
    )
    args = parser.parse_args()
    sizes: dict[str, Any] = {}
    for pair in args.set:
        name, _, value = pair.partition("=")
        sizes[name] = int(value)
    program = programs.PROGRAMS[args.program](args.ranks, **sizes)
    expected = truth.write(
        args.directory,
        program,
        args.steps,
        args.seed,
        args.fault,
        form=args.form,
        metadata=args.metadata,
    )
    print(f"{args.directory}: {args.ranks - len(expected.missing)} files, ", end="")
    print(f"{len(expected.instances)} communications, {expected.mean_step / 1e6:.3f} ms per step")
    for cause in expected.faults:
        print(f"rank {cause.rank}: {cause.cause}, saves {cause.saves / 1e6:.3f} ms per step")


if __name__ == "__main__":
    main()
