"""Takes parsed YAML; checks each kind of spec document against its model. Gives typed, frozen models, or conflicts."""
