"""Takes evidence, outcomes, log lines and times of last contact. Recognises, counts, correlates and clears faults. Gives fault observations and clearances."""
