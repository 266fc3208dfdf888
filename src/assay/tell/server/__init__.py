"""Takes requests of people and programs, and the policy's `access`. Gives the visitor who asks.

Refuses everybody who is not declared.
"""
