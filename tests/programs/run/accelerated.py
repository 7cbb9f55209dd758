"""accelerate: gradient accumulation; its optimizer steps every second time."""

import torch
from accelerate import Accelerator
from called import write_called

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batches = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=4)
net, optimizer, batches = accelerator.prepare(net, optimizer, batches)
for batch in batches:
    with accelerator.accumulate(net):
        loss = net(batch).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
print(loss.item())
write_called(net)
