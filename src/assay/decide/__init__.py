"""Takes ledger entries, evidence and the policy. Projects node states and decides, without I/O or a clock.

Gives node states, faults, proposals, decisions and plans.
Starts at `moves.decide.decide`, `plan.change_plan.make_change_plan`, `trends.trend_answer.find_trends`.
"""
