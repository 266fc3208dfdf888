"""Spellings of one and the same events: what the kernel said, in every envelope, encoding and compression."""
