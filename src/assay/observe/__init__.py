"""Takes nodes, transports, BMCs, files and agents' deliveries. Collects, parses and stores evidence.

Gives evidence documents, log messages and spec drafts. Everything that may hang has a deadline.
Starts at `evidence_collector.collect_evidence`.
"""
