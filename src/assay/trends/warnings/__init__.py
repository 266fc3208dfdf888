"""Takes what the detector of changes found, and what became of parts; opens and closes warnings. Pure.

Gives the record of each rule, and which acts its warnings pay for.
"""
