"""Takes a draft of the repository. Gives checks that cannot mean what they say, for `assay check`."""
