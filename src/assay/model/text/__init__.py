"""Takes texts that come from outside, and lists of names.

Gives them without secrets, and without characters that mislead a reader.
"""
