"""RNN, LSTM and GRU, cells and layers, to FLOPs and bytes."""

from __future__ import annotations
