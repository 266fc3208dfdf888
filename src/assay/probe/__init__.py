"""Runs on a node: standard library and NVML only, one JSON document of readings."""
