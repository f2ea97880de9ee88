"""What a built pipeline runs on, and the parts of `Pipeline` that run it."""
