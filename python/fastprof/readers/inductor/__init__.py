"""Artefacts that torch.compile writes: traces of its logs, and folders of its debug mode."""
