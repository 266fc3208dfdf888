"""Takes the pydantic models of specs, and the shapes of answers. Derives what each field means, from docstrings.

Gives JSON Schemas and their descriptions; `tools/reference` makes pages of the same.
"""
