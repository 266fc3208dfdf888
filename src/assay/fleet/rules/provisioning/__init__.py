"""Takes a draft of the repository. Gives the mistakes in deliveries, images and provisioning, for `assay check`."""
