"""A discovery of the example's fabric, as the real ibnetdiscover printed it of ibsim."""

from pathlib import Path

COMPUTE = (Path(__file__).parent / "recordings/infiniband/compute.txt").read_text()
