"""Where tickets go beside the ledger: each module is one kind of place."""
