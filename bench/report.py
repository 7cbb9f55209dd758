"""A Run -> the tables that `bench.run` prints."""

from __future__ import annotations

from bench.contenders import CONTENDERS, NAIVE, PYTHON
from bench.figures import Run, SizeFigures
from bench.targets import Target, targets

HEADER = (
    f"{'contender':<22} {'min s':>9} {'median s':>9} {'ns/kernel':>10} {'CPU':>7} {'floors':>7} "
    f"{'x python':>9} {'x naive':>8} {'B/kernel':>9} {'read':>6}"
)


def size_table(run: Run, size: SizeFigures) -> str:
    """One size: a line for each contender, its error in place of figures where it failed."""
    title = (
        f"{size.n_kernels} kernels: export {size.export_bytes / 1e6:.1f} MB, "
        f"dict file {size.dict_bytes / 1e6:.1f} MB, "
        f"interpreter's own memory {size.own_bytes / 1e6:.1f} MB"
    )
    lines = [contender_line(run, size, name) for name in CONTENDERS]
    return "\n".join([title, HEADER, *lines])


def contender_line(run: Run, size: SizeFigures, name: str) -> str:
    n, figures = size.n_kernels, size.contenders.get(name)
    if figures is None:
        seconds, _ = run.seconds(name, n)
        return f"{name:<22} {'~' + f'{seconds:.3f}' if seconds else 'not measured':>9}"
    if figures.least is None or figures.median is None:
        return f"{name:<22} {figures.error or 'not measured'}"
    cpu_time = 1e9 * min(figures.cpu_seconds) / n
    floors = run.floors(name, n)
    read = figures.read_bytes
    is_own = name not in (*PYTHON.values(), NAIVE)
    return (
        f"{name:<22} {figures.least:>9.3f} {figures.median:>9.3f} {1e9 * figures.least / n:>10.0f} "
        f"{cpu_time:>7.0f} {f'{floors:.2f}' if floors else 'na':>7} "
        f"{ratio(*run.against_python(name, n)) if is_own else '':>9} "
        f"{ratio(*run.against_naive(name, n)) if name != NAIVE else '':>8} "
        f"{size.peak_bytes(name) / n:>9.0f} {f'{read / n:.0f}' if read is not None else 'na':>6}"
    )


def ratio(times: float | None, is_measured: bool) -> str:
    """`~` says that one of the two was not measured at this size."""
    return "na" if times is None else f"{'' if is_measured else '~'}{times:.1f}"


def growth_table(run: Run) -> str:
    """Time a kernel at each size against that at the size a tenth of it, where both are there."""
    lines = []
    for size in run.sizes:
        grown = {name: run.growth(name, size.n_kernels) for name in CONTENDERS}
        if any(grown.values()):
            parts = [f"{name} {value:.2f}" for name, value in grown.items() if value]
            lines.append(f"{size.n_kernels:>9}: {', '.join(parts)}")
    return "\n".join(["time a kernel, against a tenth of the kernels", *lines]) if lines else ""


def target_table(run: Run) -> str:
    """The project's targets and whether they hold; nothing where no size has any."""
    lines = [target_line(target) for target in targets(run)]
    return "\n".join([f"{'target':<46} {'found':>12} {'asked':>12}", *lines]) if lines else ""


def target_line(target: Target) -> str:
    value = "na" if target.value is None else number(target.value)
    mark = "~" if target.is_estimate and target.value is not None else ""
    limit = f"{'>=' if target.at_least else '<='} {number(target.limit)}"
    return f"{target.text:<46} {mark + value:>12} {limit:>12}  {target.verdict}"


def number(value: float) -> str:
    return f"{value / 1e9:.2f} GB" if value >= 1e7 else f"{value:.3g}"
