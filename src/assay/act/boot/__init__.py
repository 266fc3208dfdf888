"""Takes a start whose node has proved itself. Gives one-time tokens, and for each token its secret, once."""
