"""Names that break pages which insert them as HTML, and a trace that contains them."""

from pathlib import Path

from support.kineto_files import KinetoFile

NAMES = (
    '</script><img src=x onerror="alert(1)">',
    "<!--<script>",
    "]]><svg onload=alert(2)>",
    "a\u2028b\u2029c",
    "\u202egnp.exe",
    "${alert(3)} `alert(4)` \\u003cscript>",
    "' onmouseover='alert(5)",
    "&lt;b&gt; &amp; \x00\x1b[31m\x7f",
    "\u05e9\u05dc\u05d5\u05dd <bdo dir=rtl>",
    "x" * 100_000,
)


def hostile_trace(path: Path) -> Path:
    """A trace with an operator, kernel, layer, line, range and thread of each name."""
    trace = KinetoFile(deviceProperties=[{"id": 0, "name": NAMES[0]}])
    trace.named("process_name", NAMES[1])
    time = 0
    for step in range(3):
        trace.annotation(time, time + 90_000 * len(NAMES), f"ProfilerStep#{step}")
        for i, name in enumerate(NAMES):
            at, corr = time + 90_000 * i, 100 * step + i + 1
            trace.python(at, at + 80_000, f"nn.Module: {name}_0")
            trace.python(at, at + 80_000, f"{name}.py(7): {name}")
            trace.op(at, at + 70_000, f"{name}{step or ''}", dims=[[8, 8]], types=["float"])
            trace.annotation(at, at + 75_000, f"range {name}")
            trace.launch(at + 1000, at + 5000, corr)
            trace.kernel(at + 10_000, at + 40_000 + i, corr, name)
        time += 90_000 * len(NAMES)
    return trace.write(path)
