"""The command line. Takes the words that a person types. Does one verb, loaded when needed.

Gives output and exit code.
Starts at `app.main`; `app.VERBS` lists the verbs, with the module of each.
"""
