"""Takes the YAML of playbooks, and the nodes with their bundles. Reads without Ansible which components tasks bring.

Gives the firmware tasks with the lines of the names in them, and the nodes that they select, for rules of `check`.
"""
