"""What users of Python call: `open`, `Profile`, `diff` and `batch`, over the rooms below."""
