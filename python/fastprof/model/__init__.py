"""Plain data types: traces as columns, call arguments, range meanings, file metadata, GPU peaks."""
