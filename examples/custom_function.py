"""A custom autograd.Function with ranges for its forward and backward.

python examples/custom_function.py
fastprof nsys --captured -- python examples/custom_function.py
"""

import torch

import fastprof
import settings

options = settings.read(__doc__)


class SquaredReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        positive = x.clamp(min=0)  # this could be a call to your own CUDA code
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, gradient):
        (positive,) = ctx.saved_tensors
        return 2 * positive * gradient


fastprof.init()
# `init` wraps torch's functions; wrap your own by name.
fastprof.wrap(SquaredReLU, "forward")
fastprof.wrap(SquaredReLU, "backward")

x = torch.randn(16, 256, device=options.device, requires_grad=True)

with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        SquaredReLU.apply(x).sum().backward()
        capture.step()

settings.say_where(options)
