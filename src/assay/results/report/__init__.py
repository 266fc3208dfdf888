"""Where every check stands over all runs, what broke since yesterday, and where that is clustered; as one page."""
