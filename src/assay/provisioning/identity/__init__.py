"""Takes what a node shows of itself, and the ledger's entries. Gives whether it may have, or use, a one-time token."""
