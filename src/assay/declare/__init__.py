"""Takes inventory files in Ansible's YAML. Expands host patterns and merges variables as Ansible does.

Gives hosts with the layers of their variables.
"""
