"""Functions of the user's that a pipeline calls: sources of data, and operators in Python."""
