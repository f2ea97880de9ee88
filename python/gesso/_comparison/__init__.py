"""A pipeline beside the preprocessing of training: `gesso.compare`, and the command of that name."""
