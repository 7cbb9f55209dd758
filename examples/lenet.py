"""Trains LeNet on synthetic digits, records two steps, and times the parts of every step.

python examples/lenet.py
fastprof nsys --captured -- python examples/lenet.py
"""

import torch
import torch.nn.functional as F
from torch import nn

import fastprof
import settings

options = settings.read(__doc__)
torch.manual_seed(0)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


def made_up_digits(n):
    """One pattern per digit, with random noise."""
    labels = torch.randint(10, (n,))
    return torch.randn(10, 1, 28, 28)[labels] + torch.randn(n, 1, 28, 28), labels


model = LeNet().to(options.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
digits, answers = made_up_digits(8 * 64)

fastprof.init()
fastprof.annotate_layers(model)

# Skip four steps, warm up for one, record two. `recorder` is {"backend": "nvtx"} or
# {"backend": "torch", "path": "lenet.json.gz", "with_stack": False}.
with fastprof.capture(wait=4, warmup=1, active=2, **options.recorder) as capture:
    for images, labels in zip(digits.split(64), answers.split(64), strict=True):
        images, labels = images.to(options.device), labels.to(options.device)
        with fastprof.timer("forward"):
            loss = F.cross_entropy(model(images), labels)
        with fastprof.timer("backward"):
            optimizer.zero_grad()
            loss.backward()
        with fastprof.timer("optimizer"):
            optimizer.step()
        capture.step()

print(f"loss {loss.item():.3f}")
print(fastprof.timings())
settings.say_where(options)
