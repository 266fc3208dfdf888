"""Takes inventory files in Ansible's YAML. Expands host patterns and merges group and host variables as Ansible does. Gives hosts with variable layers."""
