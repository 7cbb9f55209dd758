"""A few operators: what `fastprof.init()` adds to a program.

python examples/simple.py
fastprof nsys --captured -- python examples/simple.py
"""

import torch
import torch.nn.functional as F

import fastprof
import settings

options = settings.read(__doc__)

# From here on each call of torch stands in two ranges: the source lines it came from, and its name
# with the shapes and types of its arguments. Nothing else changes, and while nobody records, a call
# costs a fraction of a microsecond more.
fastprof.init()

images = torch.randn(4, 3, 32, 32, device=options.device)
filters = torch.randn(8, 3, 5, 5, device=options.device, requires_grad=True)
weight = torch.randn(10, 8, device=options.device, requires_grad=True)

# The first iterations of any program are slow and like no other: libraries are loaded, algorithms
# chosen, memory reserved. So one goes by, one is recorded and thrown away, and one is kept.
with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        features = F.conv2d(images, filters, padding=2).relu()
        pooled = features.mean(dim=(2, 3))
        scores = pooled @ weight.T
        loss = scores.softmax(dim=1).square().sum()
        loss.backward()
        capture.step()

settings.say_where(options)
