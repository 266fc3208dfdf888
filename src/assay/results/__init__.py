"""Takes the outcomes of runs. Stores, filters, compares and summarises them, and checks them against gates.

Gives run files, formats for people and machines, history over years, and the overview report.
"""
