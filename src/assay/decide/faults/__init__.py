"""Takes evidence, log lines, alerts and outcomes; detects, counts and correlates the faults in them.

Gives fault observations, and the clearances of faults that are over.
"""
