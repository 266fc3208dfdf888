"""Takes fabric designs, discoveries and scans. Does the verbs of `assay fabric`. Gives comparisons and drafts."""
