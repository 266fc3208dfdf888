"""Takes what a check read and how it ended. Decides verdict and reason, adds excuse and artefacts.

Gives the outcome to the run's file.
"""
