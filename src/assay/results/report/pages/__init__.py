"""Takes the latest outcomes and the runs. Writes a page for each node, rack, fabric, check and run.

Gives files in `reports/pages/` that open without a server, and links between them.
"""
