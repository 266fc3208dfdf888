"""The cabling that was designed, the cabling that is, and what differs."""
