"""Takes the YAML about loads, and does no I/O. Gives the names of parts, burn-ins, workloads and golden digests."""
