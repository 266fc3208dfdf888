"""Before a machine boots for the first time, its BMC says that it is the declared one, in its place."""

import pytest

pytestmark = [pytest.mark.phase("discovered", "initializing"), pytest.mark.passive]


@pytest.mark.fault("identity.changed")
def test_serial_at_the_bmc(node, bmc, measure):
    """Compare the serial number that the BMC gives with the inventory."""
    measure("serial at the BMC", bmc.system.serial, equals=node.declared.serial)


@pytest.mark.fault("host.misplaced")
def test_place_at_the_bmc(node, bmc, measure):
    """Compare rack and unit with the inventory, where somebody has written them into the BMC."""
    place = bmc.chassis.place
    measure("rack", place.rack or node.declared.rack, equals=node.declared.rack)
    measure("u", place.u or node.declared.u, equals=node.declared.u)
