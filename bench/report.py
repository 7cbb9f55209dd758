"""The figures of a run as one page of text."""

from __future__ import annotations

from bench.contenders import CONTENDERS, NAIVE, PYTHON
from bench.figures import Run, SizeFigures
from bench.targets import TARGET_SIZE, Target, targets

HEADER = (
    f"{'':<22} {'seconds':>8} {'ns/kernel':>9} {'floors':>6} {'x python':>8} {'x naive':>7} "
    f"{'bytes/kernel':>12}  targets"
)


def page(run: Run) -> str:
    """The contenders at 10^6 kernels, or at the largest size measured, and all targets."""
    size = run.size(TARGET_SIZE) or run.sizes[-1]
    asked = list(targets(run))
    missed = [each for each in asked if not each.is_met]
    return "\n".join(
        [
            ", ".join(f"{name} {value}" for name, value in run.machine.items()),
            f"{size.n_kernels:,} kernels: export {size.export_bytes / 1e6:.0f} MB, dict file "
            f"{size.dict_bytes / 1e6:.0f} MB; seconds are the minimum, ~ is extrapolated",
            "",
            HEADER,
            *(line_of(run, size, name, asked) for name in CONTENDERS),
            "",
            f"targets met: {len(asked) - len(missed)} of {len(asked)}" if asked else "no targets",
            *(f"  missed: {each.contender}: {each}" for each in missed),
        ]
    )


def line_of(run: Run, size: SizeFigures, name: str, asked: list[Target]) -> str:
    """The figures of a contender, or its error."""
    n, figures = size.n_kernels, size.contenders.get(name)
    if figures is not None and figures.least is None:
        return f"{name:<22} {figures.error or 'not measured'}"
    seconds, measured = run.seconds(name, n)
    if seconds is None:
        return f"{name:<22} not measured"
    mark, floors = "" if measured else "~", run.floors(name, n)
    is_own = name not in (*PYTHON.values(), NAIVE)
    own = [each.is_met for each in asked if each.contender == name]
    return (
        f"{name:<22} {f'{mark}{seconds:.3f}':>8} {f'{mark}{1e9 * seconds / n:.0f}':>9} "
        f"{f'{floors:.2f}' if floors else '':>6} "
        f"{ratio(*run.against_python(name, n)) if is_own else '':>8} "
        f"{ratio(*run.against_naive(name, n)) if name != NAIVE else '':>7} "
        f"{f'{size.peak_bytes(name) / n:.0f}' if figures else '':>12}  "
        f"{'' if not own else 'met' if all(own) else 'MISSED'}"
    ).rstrip()


def ratio(times: float | None, is_measured: bool) -> str:
    """How many times as fast; `~` marks an extrapolated figure."""
    return "" if times is None else f"{'' if is_measured else '~'}{times:.1f}"
