"""The dict lines of a profile, and the profile that is read from them."""

import io

from fastprof.api.open import open_dict_lines
from fastprof.api.profile import Profile
from fastprof.writers import write_rows


def written(profile: Profile) -> io.BytesIO:
    file = io.BytesIO()
    write_rows(profile.source.dict_line_columns(), "dict", file)
    file.seek(0)
    return file


def reopened(profile: Profile) -> Profile:
    return open_dict_lines(written(profile), "lines")
