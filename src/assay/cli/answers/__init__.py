"""Takes the shapes of what commands print with `--format json`. Gives a JSON Schema of each, and their page."""
