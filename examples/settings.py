"""Shared by the examples: device, recorder, and how to view the recording."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch


def read(text: str) -> argparse.Namespace:
    """Parse the command line: the device, and the arguments of `fastprof.capture`."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backend",
        choices=("nvtx", "torch"),
        default="nvtx" if device == "cuda" and torch.version.cuda else "torch",
        help="the recorder: Nsight Systems (nvtx) or torch.profiler; default: %(default)s",
    )
    parser.add_argument(
        "--out",
        default=f"{Path(sys.argv[0]).stem}.json.gz",
        help="the file for torch.profiler's trace; default: %(default)s",
    )
    options = parser.parse_args(namespace=argparse.Namespace(device=device))
    options.recorder = {"backend": options.backend}
    if options.backend == "torch":
        # Recording every Python call makes the file ten times larger. It is not needed:
        # `fastprof.init` records source lines and `annotate_layers` layers.
        options.recorder |= {"path": options.out, "with_stack": False}
    return options


def say_where(options: argparse.Namespace) -> None:
    """Print the path of the recording and the commands to view it."""
    if options.backend == "nvtx":
        print("The NVTX ranges are recorded only under Nsight Systems:")
        print(f"  fastprof nsys --captured -w 150 -- python {' '.join(sys.argv)}")
        return
    print(f"recorded: {options.out}")
    print(f"  fastprof info {options.out}")
    print(f"  fastprof prof -w 150 -c layer,trace,dir,op,kernel,params,sil,flops {options.out}")
    if options.device == "cpu":
        print("Without a GPU, the trace contains ranges, which `info` counts, but no kernels:")
        print("`prof` shows no rows. Run the script on a machine with a GPU to get them.")
