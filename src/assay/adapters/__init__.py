"""Partners outside: BMCs, schedulers, Prometheus, ticket systems. Like adapters have like file names.

Takes orders and questions in our words. Gives the partner's answer as readings or typed errors.
Starts at `bmc.client.BmcClient`, `scheduler.SchedulerAdapter`, `tickets.sink.TicketSink`.
"""
