"""What a release publishes: packages, requirements with hashes, an SBOM and notes. `make dist` makes them."""
