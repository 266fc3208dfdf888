"""History: the outcomes and measurements of all runs, as Parquet by day, kept for years and asked in milliseconds."""
