"""The settings that a node spec declares. Takes a node spec and readings. Gives roles, and what is not as declared.

`declared_settings.py` lists the settings and the role that brings each one. `host_settings.py` compares the probe's
readings with the spec.
"""
