"""Reads `inventory/` and `specs/` into a Fleet, and finds the mistakes in them."""
