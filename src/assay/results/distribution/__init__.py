"""Takes the history of measurements. Compares each part with those of like nodes, and each spec with the one before.

Gives distributions with their outliers, as text, JSON and HTML.
"""
