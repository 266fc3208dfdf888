"""Takes a draft of the repository. Gives the mistakes in trend rules, for `assay check`."""
