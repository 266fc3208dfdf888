"""Takes a fleet repository and the words of one command. A module is a verb: its arguments, answer and text.

Gives an answer and an exit code.
"""
