"""What a policy of the tests says so that assay acts on machines that are no lab: without it, assay only watches."""

TRUSTED = "trust: {fleet: act}\n"
"""A section for the end of a policy in YAML."""
