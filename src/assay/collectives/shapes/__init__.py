"""Takes nothing. Gives the shapes of a search as JSON: each field with what it means."""
