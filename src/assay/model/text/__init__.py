"""Takes texts that come from outside. Gives them without secrets, and without characters that mislead a reader."""
