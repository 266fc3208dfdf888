"""Takes sightings and the catalogue. Classifies, counts and correlates them. Pure.

Gives faults that began, went on or ended.
"""
