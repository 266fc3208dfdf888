"""Takes a node that goes back to its vendor; builds its dossier from ledger, evidence and photos.

Gives one zip archive, the same byte for byte each time it is built from the same things.
"""
