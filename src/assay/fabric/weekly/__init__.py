"""The weekly look at a fabric: ports against their peers, slow drifts, links that flap, cables by vendor and batch."""
