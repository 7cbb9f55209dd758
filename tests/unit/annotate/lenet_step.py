"""One annotated training step of LeNet; prints the records of an independent witness as JSON."""

import json
import sys

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

import fastprof
from fastprof.model.call import Tensor
from support.record_calls import python_calls


class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 6, 5)
        self.conv2 = torch.nn.Conv2d(6, 16, 5)
        self.fc1 = torch.nn.Linear(16 * 5 * 5, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))  # conv1 relu max_pool2d
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)  # conv2 relu max_pool2d
        x = x.view(x.size(0), -1)  # view
        x = F.relu(self.fc1(x))  # fc1 relu
        x = F.relu(self.fc2(x))  # fc2 relu
        return self.fc3(x)  # fc3


def step(net, images, labels, optimizer):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(images), labels)  # cross_entropy
    loss.backward()  # backward
    optimizer.step()


torch.manual_seed(0)
net = LeNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(4, 1, 32, 32), torch.randint(10, (4,))), batch_size=4
)
images, labels = next(iter(loader))

with python_calls() as calls:
    F.cross_entropy(net(images), labels)
with FlopCounterMode(display=False) as counter:
    net(images)

fastprof.init(enable_function_stack="--functions" in sys.argv)
fastprof.annotate_layers(net)
images, labels = next(iter(loader))
step(net, images, labels, optimizer)
fastprof.uninit()
net(images)  # only the layers' ranges are left

witnessed = [
    [call.op, [arg.value.shape for arg in call.args if isinstance(arg.value, Tensor)]]
    for call in calls
]
print(json.dumps({"calls": witnessed, "flops": counter.get_total_flops()}))
