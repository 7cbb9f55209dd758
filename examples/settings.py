"""What the examples share: where they run, who records them, and how to look at the recording."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch


def read(text: str) -> argparse.Namespace:
    """The device to run on, and what to give `fastprof.capture` by the options of the command."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backend",
        choices=("nvtx", "torch"),
        default="nvtx" if device == "cuda" and torch.version.cuda else "torch",
        help="who records: Nsight Systems (nvtx), around this script; or torch.profiler, within it",
    )
    parser.add_argument(
        "--out",
        default=f"{Path(sys.argv[0]).stem}.json.gz",
        help="where torch.profiler's trace goes; default: %(default)s",
    )
    options = parser.parse_args(namespace=argparse.Namespace(device=device))
    options.recorder = {"backend": options.backend}
    if options.backend == "torch":
        # `fastprof.init` says source lines and `annotate_layers` layers, so torch need not record
        # every Python call for them: the file would be ten times larger.
        options.recorder |= {"path": options.out, "with_stack": False}
    return options


def say_where(options: argparse.Namespace) -> None:
    """Print where the recording is and the commands to look at it."""
    if options.backend == "nvtx":
        print("The ranges went to the tool that runs this script, if there was one. To have one:")
        print(f"  fastprof nsys --captured -w 150 -- python {' '.join(sys.argv)}")
        return
    print(f"recorded: {options.out}")
    print(f"  fastprof info {options.out}")
    print(f"  fastprof prof -w 150 -c layer,trace,dir,op,kernel,params,sil,flops {options.out}")
    if options.device == "cpu":
        print("No GPU took part: the trace holds ranges, which `info` counts, and no kernels, so")
        print("`prof` has no rows. On a machine with a GPU the same script fills them.")
