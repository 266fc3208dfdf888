"""Takes what loads have proven of each GPU. Gives lines for people and JSON: the coverage, and what it cost customers."""
