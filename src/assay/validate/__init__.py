"""Takes a fleet, its suites and stored evidence. Judges every declared check on every subject, with pytest.

Gives runs: one file of outcomes each, with an outcome for everything that is declared.
Starts at `plugin`, `runs.run_validation.run_validation`.
"""
