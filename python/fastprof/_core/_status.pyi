# Empty for Python: `check` is a C function for the other compiled modules.
