"""What `assay init` makes a fleet repository of: the example's parts as they are, and a few files of its own."""
