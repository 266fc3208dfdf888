"""Takes a fleet repository and the words of one command. Does the command. Gives an answer and an exit code."""
