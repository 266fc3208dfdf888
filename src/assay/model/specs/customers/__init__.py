"""What customers are told: the words for faults and states, and where notices go.

Takes sections of the fault catalogue and the policy. Gives their data types.
"""
