"""Takes a good node's stored evidence; derives a node spec and its limits, without I/O; gives YAML with review comments."""
