"""What people and programs are shown of a fleet, as data and as plain sentences: no HTML, no HTTP, no command line.

Takes the fleet, its ledger and the caches of the controller. Gives frozen dataclasses and JSON for pages, API and CLI.
"""
