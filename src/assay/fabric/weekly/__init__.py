"""Takes the stored scans of a week. Compares each port with its peers, finds drifts, flaps and bad batches.

Gives a WeeklyEvaluation as text, JSON, evidence and a HTML page.
"""
