"""Takes a folder or a commit of git. Reads its files, its playbooks and its signatures.

Gives trees of files, a draft of the repository for the rules, and who signed what.
"""
