"""Read-only access to SQLite files: connections, pages, tables to columns."""
