"""Takes the summary of a run, or a comparison of two. Formats it, with one module for each format.

Gives lines of text, JSON, JUnit XML, Markdown or GitHub annotations.
"""
