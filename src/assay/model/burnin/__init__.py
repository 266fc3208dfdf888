"""Takes the YAML of a burn-in. Gives its phases and what is told about change over the day."""
