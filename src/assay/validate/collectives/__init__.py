"""Takes the rounds of a search and a command. Runs each pair in a process of its own, with a deadline.

Gives one line of JSON for each result, in a file from which an interrupted search continues.
"""
