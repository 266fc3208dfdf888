"""Takes the records of a fleet. Gives lists of nodes, pools, rollouts and changes, for the API."""
