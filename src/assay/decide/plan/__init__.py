"""Takes two revisions of the fleet and what is known of the nodes; compares them, without I/O.

Gives what merging would change, what the policy then does, and the work in waves, as text, Markdown or JSON.
"""
