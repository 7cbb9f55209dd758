"""Write docs/reports.md, the built-in reports: `python docs/make_reports.py`."""

from pathlib import Path

from fastprof._system.output_file import output_file
from fastprof.analysis.document import reports_page

PAGE = Path(__file__).parent / "reports.md"

if __name__ == "__main__":
    with output_file(PAGE) as file:
        file.write(reports_page().encode())
