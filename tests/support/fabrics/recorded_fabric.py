"""A discovery of the example's fabric, as the real ibnetdiscover printed it of ibsim."""

from tests.support.places import ROOT

COMPUTE = (ROOT / "tests/data/infiniband/compute.txt").read_text()
