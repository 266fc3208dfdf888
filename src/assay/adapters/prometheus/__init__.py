"""Takes a Monitoring document and a Prometheus server, or Alertmanager's payload.

Gives the readings of the channel `probe`, XIDs as kernel lines, and mapped alerts.
"""
