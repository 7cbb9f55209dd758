# Nothing for Python: `check` is for the other compiled modules.
