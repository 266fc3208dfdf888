"""Takes the test functions of a fleet's suites. Makes one pytest item for each check × subject, and runs the items.

Gives outcomes, pytest's reports and the lines in the terminal.
"""
