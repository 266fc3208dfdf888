"""Takes the YAML of what active checks compare with. Validates it. Gives golden digests."""
