"""Takes batches of agents and alerts of Alertmanager over HTTPS. Writes faults and evidence, then acknowledges.

Gives one JSON object per request.
"""
