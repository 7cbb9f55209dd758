"""Write docs/glossary.md, the terms of fastprof: `python docs/make_glossary.py`."""

from pathlib import Path

from fastprof._system.output_file import output_file
from fastprof.analysis.glossary import glossary_page

PAGE = Path(__file__).parent / "glossary.md"

if __name__ == "__main__":
    with output_file(PAGE) as file:
        file.write(glossary_page().encode())
