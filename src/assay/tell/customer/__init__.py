"""What customers are told of a node, in words without codes, ids and names of people.

Takes a node's state, its entries in the ledger and the policy. Gives sentences.
"""
