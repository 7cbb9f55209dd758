"""A small ResNet with named layers: modules automatically, other code by hand.

python examples/resnet_layers.py
fastprof nsys --captured -- python examples/resnet_layers.py
fastprof prof -c layer,dir,op,sil ...   # on a GPU: time by layer, forward and backward
"""

import torch
import torch.nn.functional as F
from torch import nn

import fastprof
import settings

options = settings.read(__doc__)


class Block(nn.Module):
    def __init__(self, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels // stride, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Conv2d(channels // stride, channels, 1, stride, bias=False)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        # annotate_layers covers modules only, not this addition.
        with fastprof.layer("residual"):
            return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.stage1 = nn.Sequential(Block(16), Block(16))
        self.stage2 = nn.Sequential(Block(32, stride=2), Block(32))
        self.head = nn.Linear(32, 10)

    @fastprof.layer("resnet")  # all calls of the function
    def forward(self, x):
        x = self.stage2(self.stage1(self.stem(x)))
        return self.head(x.mean(dim=(2, 3)))


model = ResNet().to(options.device)
images = torch.randn(4, 3, 32, 32, device=options.device)

fastprof.init()
fastprof.annotate_layers(model)  # stem, stage1, stage1.0, stage1.0.conv1, ...

with fastprof.capture(wait=1, warmup=1, active=1, **options.recorder) as capture:
    for _ in range(3):
        # Backward kernels have the layer of their forward call.
        model(images).square().sum().backward()
        capture.step()

settings.say_where(options)
