"""Kernels fused by torch.compile."""
