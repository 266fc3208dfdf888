"""Takes fabric designs, discoveries and stored scans. Does the verbs of `assay fabric`. Gives comparisons, drafts, impact and weekly evaluations."""
