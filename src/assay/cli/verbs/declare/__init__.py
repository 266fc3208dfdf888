"""Takes inventory, specs and policies. Does the verbs that make, check, show and compare them. Gives reports."""
