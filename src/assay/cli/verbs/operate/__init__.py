"""Takes the ledger, the policy and people's orders. Does the verbs of operation. Gives states, tickets and dossiers."""
