"""Takes a machine with a GPU. Answers what only a GPU can about the battery: speed, repeated bits, memory, a kill.

Gives one JSON document of what it saw. Each question is a process of its own with a deadline.
"""
