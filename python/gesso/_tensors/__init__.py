"""Samples and batches: their types, their memory on the host or a GPU, what users feed as such."""
