"""Takes the files of ended runs. Keeps the latest outcome of every check, and finds what changed.

Gives the overview, the Allure report, JUnit XML and GitHub annotations.
"""
