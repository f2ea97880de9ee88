"""Iterators of frameworks over pipelines, and helpers of servers."""
