"""What the repository's playbooks would do, read without Ansible: for rules of `assay check`."""
