"""Takes a ledger or a copy of one; copies it into a file or a database, and verifies that. Gives how its chains end."""
