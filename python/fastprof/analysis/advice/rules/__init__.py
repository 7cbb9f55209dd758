"""The built-in rules, a module per family."""
