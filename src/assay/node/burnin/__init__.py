"""Takes the plan of a burn-in. A process on the node carries it out, over reboots. Gives lines of what it saw."""
