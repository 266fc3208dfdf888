"""Takes the fleet, its ledger and its outcomes. Tells people and programs, in pages, messages, metrics and reports.

Gives HTML, JSON, messages to ticket systems and customers, and Prometheus' metrics.
Starts at `server.server.serve`, `views.fleet.build_fleet_view`, `messages.delivery.deliver_tickets`.
"""
