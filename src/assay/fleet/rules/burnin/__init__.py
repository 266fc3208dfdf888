"""Takes a draft of the repository. Gives the mistakes in burn-ins, for `assay check`."""
