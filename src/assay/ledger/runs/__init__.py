"""Takes the outcomes of a run as they come; stores them in one SQLite file, with what the run was asked to do.

Gives the run back outcome by outcome, merges the files of its processes, and finds runs by name.
"""
