"""What may still change: `proxy`, a pipeline behind the worker processes of a `DataLoader`."""
