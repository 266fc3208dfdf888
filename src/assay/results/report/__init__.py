"""Takes the files of ended runs. Keeps the latest outcome of every check, and finds what changed and where it clusters.

Gives the overview page and the Allure report.
"""
