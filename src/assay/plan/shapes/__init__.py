"""Takes a plan. Gives it as JSON, and its shape: each field with what it means."""
