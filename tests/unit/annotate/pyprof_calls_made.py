"""Makes all calls of pyprof_calls.CALLS with annotation, each in a range with its number."""

import warnings

import nvtx
import torch
import torch.nn.functional as F

import fastprof
from unit.annotate.pyprof_calls import CALLS, I, R

warnings.simplefilter("ignore")  # some calls are deprecated since
FLOAT_TARGETS = {"binary_cross_entropy"}  # takes probabilities where others take classes


def made(value, op):
    if isinstance(value, R):
        return torch.randn(value.shape)
    if isinstance(value, I):
        indices = torch.randint(value.below, value.shape)
        return indices.float() if op in FLOAT_TARGETS else indices
    return value


prepared = [
    (op, [made(x, op) for x in args], {key: made(x, op) for key, x in named.items()})
    for op, args, named in CALLS
]
with fastprof.init():
    for number, (op, args, named) in enumerate(prepared):
        with nvtx.annotate(f"call {number}"):
            (getattr(torch, op[6:]) if op.startswith("torch.") else getattr(F, op))(*args, **named)
