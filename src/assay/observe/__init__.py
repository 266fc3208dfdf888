"""Brings evidence here: probes, BMCs, recordings. Collecting may hang, so everything has a deadline."""
