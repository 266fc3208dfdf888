"""Takes a fabric's design, the fleet, and what fabric tools print. Compares designed with discovered cabling.

Gives discrepancies, tickets, port health, and a weekly evaluation. The modules here scan a fabric and hold discoveries.
"""
