"""Takes a page's template and values. Fills them into the one base page, with the one stylesheet.

Gives a HTML page in a single file. Imports nothing of assay but `model`.
"""
