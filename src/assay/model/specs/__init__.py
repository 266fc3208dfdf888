"""Takes parsed YAML of `specs/`; checks each kind of document against its model.

Gives typed, frozen models, or conflicts.
"""
