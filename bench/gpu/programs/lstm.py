"""A language model of two cuDNN LSTM layers, in fp32."""

import torch
from common import DEVICE, options, run
from torch import nn

args = options("tf32")
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10000, 512)
        self.lstm = nn.LSTM(512, 1024, 2, dropout=0.1)
        self.head = nn.Linear(1024, 10000)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


model = Model().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
x = torch.randint(0, 10000, (64, 32), device=DEVICE)


def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x).view(-1, 10000), x.view(-1))
    loss.backward()
    optimizer.step()
    loss.item()


run(step, args, warm_up=6, n=20)
