"""All outputs for some files, from a separate process with given machine settings."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.waiting import PATIENCE

COLUMNS = "idx,seq,altseq,layer,trace,dir,sub,op,kernel,params,sil,flops,bytes"
WORDS = {
    "dict": ["parse"],
    "jsonl": ["parse", "--format", "jsonl"],
    "parquet": ["parse", "--format", "parquet"],
    "csv": ["prof", "--csv", "--all", "-c", COLUMNS],
    "json": ["prof", "--json"],
    "width": ["prof", "-w", "180"],
}
PROGRAM = """
import contextlib, io, json, sys
from fastprof.cli import main
files, words, out = json.load(sys.stdin)
for i, file in enumerate(files):
    for name, each in words.items():
        if file.endswith(".dict") and each[0] == "parse":
            continue
        assert main([*each, file, "-o", f"{out}/{i}.{name}"]) == 0
    text = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(text):
        assert main(["info", "--json", file]) == 0
    with open(f"{out}/{i}.info", "wb") as info:
        info.write(text.buffer.getvalue())
"""


def outputs(files: Sequence[Path], folder: Path, cores: int = 2, **settings: str) -> dict[str, str]:
    """A hash of each output by the number of its file and its name.

    cores : how many the process may use
    settings : environment variables
    """
    folder.mkdir()
    usable = sorted(os.sched_getaffinity(0))[:cores]
    subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([[str(file) for file in files], WORDS, str(folder)]).encode(),
        env={**os.environ, **settings},
        preexec_fn=lambda: os.sched_setaffinity(0, usable),
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=PATIENCE,
    )
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }
