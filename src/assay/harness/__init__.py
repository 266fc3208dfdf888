"""The pytest plugin: checks over the fleet, limits, measurements, outcomes."""
