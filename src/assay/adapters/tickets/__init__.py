"""Takes a ticket as it should be; writes it to files, GitHub, Jira or a signed webhook.

Gives the system's own name of the ticket.
"""
