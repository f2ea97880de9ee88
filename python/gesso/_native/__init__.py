"""The library: its functions, and what runs a file with them. Knows no graphs."""
