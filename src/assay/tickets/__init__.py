"""Takes ledger entries and the tickets that the fleet needs now; opens, updates, closes and delivers tickets.

Gives ledger entries and, at each ticket sink, one up-to-date ticket.
"""
