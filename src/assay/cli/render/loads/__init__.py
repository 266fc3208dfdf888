"""Takes what loads have proven of each GPU. Gives lines for people and JSON: its coverage, and what it cost others."""
