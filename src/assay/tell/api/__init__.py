"""Takes requests of visitors for JSON. Gives views of the fleet, changes of its ledger, and results of orders."""
