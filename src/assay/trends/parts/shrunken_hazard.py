"""How often a group fails, drawn towards what is usual: a Gamma–Poisson estimate.

A group that was hardly watched is as usual; one that was watched for long speaks for itself.
"""

from __future__ import annotations

PRIOR_FAILURES = 5.0
"""How many failures of its own a group needs to count as much as what is usual."""


def shrink_hazard(failures: float, days: float, usual: float, prior: float = PRIOR_FAILURES) -> float:
    """Return failures a day: (n + k) / (exposure + k / usual). `usual`: failures a day of all, 0 for none."""
    return (failures + prior) / (days + prior / usual) if usual > 0 else failures / days if days > 0 else 0.0
