"""Takes the views of the fleet. Pages follow the ledger while they are open; they need no build step and no other host.

Gives HTML.
"""
