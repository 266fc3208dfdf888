"""Takes two revisions of the fleet; compares what assay acts by, beside nodes and their specs.

Gives a plain line with its place for each change of schedules, gates, routes, signers, playbooks and other files, and
the risks of the merge.
"""
