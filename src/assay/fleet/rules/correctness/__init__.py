"""Takes a draft of the repository. Gives the mistakes in golden digests, for `assay check`."""
