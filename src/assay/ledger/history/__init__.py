"""Takes the files of ended runs; writes their outcomes and measurements as Parquet by day, kept for years.

Gives answers over many runs in milliseconds: outcomes, turns, rates, flaky checks.
"""
