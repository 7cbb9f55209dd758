"""The totals of a memory snapshot by torch's own tools; arguments: the snapshot, the output."""

import json
import pickle
import re
import sys
from pathlib import Path

from torch.cuda import _memory_viz

if __name__ == "__main__":
    data = pickle.loads(Path(sys.argv[1]).read_bytes())
    lines = _memory_viz.memory(data, format_flamegraph=lambda text: text).splitlines()
    stacks = []
    for line in lines:
        path, _, size = line.rpartition(" ")
        _, state, *frames = path.split(";")
        if state == "active_allocated" and frames != ["<gaps>"]:
            stacks.append([frames, int(size)])
    _memory_viz._format_size = lambda number: str(number)  # bytes instead of MiB
    summary = _memory_viz.segsum(data)
    _memory_viz.trace(data)
    found = {
        name: int(re.search(rf"{label}: (\d+)", summary)[1])
        for name, label in (
            ("allocated", "total_allocated"),
            ("reserved", "total_reserved"),
            ("segments", "segments"),
        )
    }
    Path(sys.argv[2]).write_text(json.dumps({**found, "stacks": stacks}))
