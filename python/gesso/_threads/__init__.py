"""Threads, forks and Ctrl-C. Knows nothing of data."""
