"""Takes a fabric's design, the fleet, and what fabric tools print. Compares designed with discovered cabling.

Gives discrepancies, tickets, port health, and a weekly evaluation.
Starts at `scan.run_fabric_scan`, `compare.compare.compare_cabling`.
"""
