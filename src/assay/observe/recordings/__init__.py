"""Recordings that people made with other tools, read in as evidence: one module a format."""
