"""torch.jit with annotated code. Run torch.jit first, then init, then mixed precision.

python examples/jit.py
fastprof nsys --captured -- python examples/jit.py
"""

import torch
from torch import nn

import fastprof
import settings

options = settings.read(__doc__)


@torch.jit.script
def squared_relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * torch.relu(x)


x = torch.randn(16, 64, device=options.device, requires_grad=True)
traced = torch.jit.trace(nn.Sequential(nn.Linear(64, 64), nn.Tanh()).to(options.device), x)
head = nn.Linear(64, 10).to(options.device)

fastprof.init()

# Scripted and traced code runs in torch's interpreter, not in Python. Its operators have names and
# shapes but no source lines, so put it in a layer.
with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        with torch.autocast(options.device, dtype=torch.bfloat16):
            with fastprof.layer("scripted"):
                y = squared_relu(x)
            with fastprof.layer("traced"):
                y = traced(y)
            with fastprof.layer("head"):
                y = head(y)
        y.float().square().sum().backward()
        capture.step()

settings.say_where(options)
