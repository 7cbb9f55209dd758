"""Profile -> files of other tools: a module or package per format, and the registry."""
