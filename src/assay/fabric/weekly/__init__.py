"""Takes the stored scans of a week. Compares each port with its peers, finds drifts and flaps.

Gives a WeeklyEvaluation as text, JSON and evidence.
"""
