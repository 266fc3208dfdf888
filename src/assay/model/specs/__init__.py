"""Takes parsed YAML. Says what a spec document of each kind may hold and what it may not contradict. Gives typed, frozen models."""
