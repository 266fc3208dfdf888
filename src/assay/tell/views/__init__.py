"""What people and programs are shown of a fleet, as data and plain sentences: no HTML, no HTTP.

Takes the fleet, its ledger and the loop's states. Gives frozen dataclasses for pages, API and command line.
"""
