"""Takes the fleet and a node's attempt to boot. Gives the documents that cloud-init fetches. None holds a secret."""
