"""Takes what was read of a fleet repository, or compiled of a fabric; keeps it in `.assay/cache`.

Gives it back as long as the files and the code that it came from are the same.
"""
