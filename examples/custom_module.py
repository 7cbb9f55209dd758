"""A custom module, reported as one call with its settings.

python examples/custom_module.py
fastprof nsys --captured -- python examples/custom_module.py
"""

import torch

import fastprof
import settings

options = settings.read(__doc__)


class ScaleAndShift(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(size))
        self.shift = torch.nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return self.scale * x + self.shift  # this could be a call to your own CUDA code

    def extra_repr(self):  # shown by print(module) and in the module's range
        return f"size={len(self.scale)}"


fastprof.init()
fastprof.wrap(ScaleAndShift, "forward")

module = ScaleAndShift(256).to(options.device)
x = torch.randn(16, 256, device=options.device)

with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        module(x).sum().backward()
        capture.step()

settings.say_where(options)
