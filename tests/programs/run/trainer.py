"""transformers: Trainer with gradient accumulation, and generate within training."""

import sys

import torch
from called import write_called
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

torch.manual_seed(0)
net = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64))


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        ids = torch.arange(i, i + 16) % 100
        return {"input_ids": ids, "labels": ids}


class Samples(TrainerCallback):
    """Generates text after each step, as programs do to show progress."""

    def on_step_end(self, args, state, control, **kwargs):
        net.eval()
        net.generate(torch.zeros(1, 4, dtype=torch.long), max_new_tokens=2, do_sample=False,
                     pad_token_id=0)  # fmt: skip
        net.train()


arguments = TrainingArguments(
    sys.argv[1], per_device_train_batch_size=2, max_steps=8, gradient_accumulation_steps=2,
    report_to=[], use_cpu=True, logging_steps=100, save_strategy="no", disable_tqdm=True,
)  # fmt: skip
trainer = Trainer(net, arguments, train_dataset=Data(), callbacks=[Samples()])
trainer.remove_callback(PrinterCallback)  # prints times
print(trainer.train().training_loss)
write_called(net)
