"""Takes the snapshot of a fleet, and the tickets that stand. Opens, updates and closes. Gives ledger entries."""
