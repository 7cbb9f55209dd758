"""The identity of a trace file: size, modification time and a hash of samples."""

from __future__ import annotations

import hashlib
from typing import Final

from fastprof._system.classes import dataclass
from fastprof._system.file_state import state_of

_SAMPLE_SIZE: Final = 1 << 16
_N_SAMPLES: Final = 16


@dataclass(frozen=True)
class Source:
    """A trace file at the time of reading.

    Parameters
    ----------
    path : as given by the user
    size : bytes
    changed : modification time, ns
    fingerprint : BLAKE2 of 16 samples of 64 kB, spread evenly over the file
    """

    path: str
    size: int
    changed: int
    fingerprint: str

    def is_same(self, other: Source) -> bool:
        """Whether the content is the same. Paths may differ.

        False for a file that was written or touched, since samples do not prove equality.
        """
        own = self.size, self.changed, self.fingerprint
        return own == (other.size, other.changed, other.fingerprint)


def source_of(path: str) -> Source:
    """The identity of a file. Reads at most 1 MB.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with open(path, "rb", buffering=0) as file:
        state = state_of(file.fileno())
        digest = hashlib.blake2b(digest_size=16)
        step = max(_SAMPLE_SIZE, -(-(state.size - _SAMPLE_SIZE) // (_N_SAMPLES - 1)))
        for start in range(0, state.size, step):
            file.seek(min(start, max(0, state.size - _SAMPLE_SIZE)))
            digest.update(file.read(_SAMPLE_SIZE))
    return Source(path, state.size, state.modified, digest.hexdigest())
