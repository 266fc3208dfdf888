"""Takes the draft of a repository. Finds one kind of mistake per function with `@rule`; a module holds one theme.

Gives findings with a place, a message and a fix.
"""
