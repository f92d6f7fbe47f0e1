"""Options and their ini twins: the table, what values may be, registration and reading."""
