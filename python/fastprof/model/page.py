"""Page: a report as one HTML file."""

from __future__ import annotations

import os

from fastprof._system.classes import dataclass
from fastprof._system.output_file import output_file


@dataclass(frozen=True)
class Page:
    """A report as one HTML file that needs no network. Notebooks show it inline.

    Parameters
    ----------
    html : the file
    """

    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file. An existing file is replaced.

        Raises
        ------
        OSError
            The file cannot be written; an existing file is unchanged.
        """
        with output_file(path) as file:
            file.write(self.html.encode())

    def __repr__(self) -> str:
        return f"<fastprof page: {len(self.html.encode()) / 1e6:.1f} MB of HTML; save(path)>"

    def _repr_html_(self) -> str:
        from html import escape

        # The sandbox separates the scripts of the page from the notebook.
        return (
            '<iframe title="fastprof report" sandbox="allow-scripts" '
            'style="width:100%;height:80vh;min-height:30rem;border:1px solid #8884" '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )
