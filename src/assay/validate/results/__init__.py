"""Takes the outcomes of runs. Filters, compares and summarises them, and checks them against gates.

Gives changes, and what may be deleted.
"""
