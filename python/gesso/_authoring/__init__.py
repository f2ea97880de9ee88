"""What a definition is made of: operators with their arguments, the graph of them, its file."""
