"""Communication hidden behind compute and exposed, by GPU and by kernel."""

from __future__ import annotations

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.analysis.gpu_work import COMMUNICATION, TimeLines, time_lines, work_of_device
from fastprof.model.arrays import Int64
from fastprof.profile.data import ProfileData


@dataclass(frozen=True)
class Exposure:
    """The communication of a profile.

    Each moment counts once: for the communication kernel of its GPU that started first.

    Parameters
    ----------
    of_device : the time line of each GPU
    hidden, exposed : int64 [kernels], ns; 0 for work other than communication
    """

    of_device: TimeLines
    hidden: Int64
    exposed: Int64


def exposure(profile: ProfileData) -> Exposure:
    """Sweep the work of each GPU; n log n in its communication, linear in its other work."""
    hidden, exposed = np.zeros((2, len(profile)), np.int64)
    parts = work_of_device(profile).parts
    is_communication = parts.work.kind == COMMUNICATION
    if is_communication.any():
        rows = parts.work.rows[is_communication]
        exposed[rows] = parts.own_ns()[is_communication]
        wanted = np.zeros(len(profile), bool)
        wanted[rows] = True
        hidden[rows] = parts.selected(wanted).own_ns() - exposed[rows]
    return Exposure(time_lines(profile), hidden, exposed)
