"""Takes the fleet and the options of the command line. Decides which checks are judged on which subjects.

Gives those checks and subjects.
"""
