"""A virtual fleet to rehearse on. It imitates the far end only; nothing outside the lab and the CLI imports it."""
