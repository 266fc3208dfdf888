"""Takes requests over HTTPS: of agents, of machines that boot, of people. Finds out who asks.

Gives the answer of a page, the API or an intake, and refuses everybody who is not declared.
"""
