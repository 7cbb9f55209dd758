"""A few operators: the effect of `fastprof.init()` on a program.

python examples/simple.py
fastprof nsys --captured -- python examples/simple.py
"""

import torch
import torch.nn.functional as F

import fastprof
import settings

options = settings.read(__doc__)

# From here on, every torch call is enclosed in two ranges: its source lines, and its name with the
# shapes and types of its arguments. Unprofiled, the overhead is a fraction of a microsecond per
# call.
fastprof.init()

images = torch.randn(4, 3, 32, 32, device=options.device)
filters = torch.randn(8, 3, 5, 5, device=options.device, requires_grad=True)
weight = torch.randn(10, 8, device=options.device, requires_grad=True)

# First iterations are slow: libraries load, algorithms are chosen, memory is allocated. So skip
# one, warm up for one, and record one.
with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        features = F.conv2d(images, filters, padding=2).relu()
        pooled = features.mean(dim=(2, 3))
        scores = pooled @ weight.T
        loss = scores.softmax(dim=1).square().sum()
        loss.backward()
        capture.step()

settings.say_where(options)
