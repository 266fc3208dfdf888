"""Takes commands, specs, metrics and faults, and gives the pages and pictures in docs/ that are made of them."""
