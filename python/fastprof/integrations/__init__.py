"""Integrations with other libraries, one module per library."""
