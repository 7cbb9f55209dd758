"""Write docs/ops.md, the table of operators in the registry: `python docs/make_ops.py`."""

from pathlib import Path

import fastprof.ops  # noqa: F401 -- registers all families
from fastprof._system.output_file import output_file
from fastprof.ops.document import operators_page

PAGE = Path(__file__).parent / "ops.md"

if __name__ == "__main__":
    with output_file(PAGE) as file:
        file.write(operators_page().encode())
