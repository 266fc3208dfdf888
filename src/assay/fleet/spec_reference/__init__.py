"""Takes the pydantic models of specs. Derives what each field means, from descriptions and docstrings.

Gives reference pages in Markdown, and the descriptions of the JSON Schemas.
"""
