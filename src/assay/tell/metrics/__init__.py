"""Takes the fleet, the ledger and assay's own files; counts them. Gives Prometheus' metric families."""
