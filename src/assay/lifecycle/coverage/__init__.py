"""What loads have proven of each GPU, and what a visit to an idle node proves next.

Takes ledger entries of visits. Gives the coverage of each serial number, the cost of visits, and the next visit's plan.
"""
