"""Takes the views of the fleet. Gives HTML pages that follow the ledger while they are open.

The pages need no build step and no other host. They only read.
"""
