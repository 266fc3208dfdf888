"""Takes a node and how long to load it. Runs one tool of the node a module. Gives readings of what the tool said."""
