"""Lightning: Trainer.fit, with validation."""

import lightning.pytorch as pl
import torch
from called import write_called


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
        )

    def training_step(self, batch, _):
        return self.net(batch).square().mean()

    def validation_step(self, batch, _):
        self.net(batch)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


pl.seed_everything(0)
net = Net()
trainer = pl.Trainer(
    max_steps=8, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, val_check_interval=4,
)  # fmt: skip
batches = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=4)
trainer.fit(net, batches, batches)
print(trainer.global_step, next(net.parameters()).sum().item())
write_called(net)
