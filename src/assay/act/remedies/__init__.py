"""How actions do their work: playbooks, firmware, settings, wiping, dossiers.

Takes a node and what its spec wants. Gives what was written and what proves it, or an error that names what differs.
"""
