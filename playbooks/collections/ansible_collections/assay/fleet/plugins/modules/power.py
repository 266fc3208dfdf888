"""Documentation of assay.fleet.power; the work is done by the action plugin of the same name."""

DOCUMENTATION = r"""
module: power
short_description: Restart or power-cycle a node through its BMC, and wait for it
description:
  - Asks the node's BMC for a reset, unless the node already runs another boot than I(unless_after).
  - Waits until the node's probe answers, after a reset with another boot id than before.
options:
  reset:
    description: The Redfish reset type. Without it nothing is reset, the node is only waited for.
    type: str
    choices: ["", ForceRestart, GracefulRestart, PowerCycle]
    default: ""
  unless_after:
    description: A boot id. The reset is left out when the node runs another boot by now.
    type: str
    default: ""
  wait_s:
    description: How many seconds to wait for the node.
    type: float
    default: 1800
author: [assay]
"""

EXAMPLES = r"""
- name: Restart
  assay.fleet.power:
    reset: ForceRestart
"""

RETURN = r"""
boot_id:
  description: The boot id that the probe read at the end.
  type: str
  returned: success
"""
