"""Tells customers what became of their nodes, once: on the nodes by their schedulers, and by webhooks.

Takes the words of the views, and what the ledger says that customers were told. Gives what is new to each place.
"""
