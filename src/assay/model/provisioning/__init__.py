"""Takes the documents of Day 0: deliveries, images, provisioning, a node's network. Gives their models."""
