"""Takes seals of a ledger, keeps them where who alters the ledger does not reach, and gives them back to compare.

`file:PATH`, `git-note[:REF]`, `ledger:LOCATION` and `rfc3161:URL[#CA]` are such places; each keeps seals of one ledger.
"""
