"""What people are told and asked: tickets and their sinks, and words for every line of the ledger."""
