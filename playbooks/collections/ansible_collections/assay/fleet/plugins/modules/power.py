"""Documentation of assay.fleet.power. The action plug-in of the same name does the work."""

DOCUMENTATION = r"""
module: power
short_description: Restart or power-cycle a node through its BMC, and wait for it
description:
  - Resets the node through its BMC, unless the node already runs another boot than I(unless_after).
  - Waits until the node's probe answers; after a reset, with another boot id than before.
options:
  reset:
    description: The Redfish reset type. If it is empty, nothing is reset and the task only waits for the node.
    type: str
    choices: ["", ForceRestart, GracefulRestart, PowerCycle]
    default: ""
  unless_after:
    description: A boot id. The node is not reset if it runs another boot by now.
    type: str
    default: ""
  wait_s:
    description: The limit in seconds of the wait for the node.
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
