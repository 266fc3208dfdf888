"""Takes the files of ended runs. Keeps the latest outcome of every check, and finds what changed and where it clusters.

Gives the overview, the pages that it links to, and the Allure report.
"""
