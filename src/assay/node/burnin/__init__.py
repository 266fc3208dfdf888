"""Takes the plan of a burn-in. Gives a process on the node that carries it out, and lines of what it saw."""
