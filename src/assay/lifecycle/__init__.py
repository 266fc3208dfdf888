"""The lifecycle: history folded into where each node is, and the pure decision of what happens next."""
