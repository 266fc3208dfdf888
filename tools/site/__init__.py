"""The documentation as a site: `make docs` builds it from docs/ and the pages at the root of the repository."""
