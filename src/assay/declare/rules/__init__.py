"""Takes a draft of the repository. Gives the mistakes in burn-ins and in the times of loads, for `assay check`."""
