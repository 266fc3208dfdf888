"""Takes the ledger's entries about rollouts, and the states of the nodes. Decides which nodes leave service, and when.

Pure. Gives the progress of each node, and the orders, pauses and ends that the controller records.
"""
