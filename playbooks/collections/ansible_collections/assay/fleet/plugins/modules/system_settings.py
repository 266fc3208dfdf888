"""Documentation of assay.fleet.system_settings. The action plug-in of the same name does the work."""

DOCUMENTATION = r"""
module: system_settings
short_description: Bring BIOS attributes and boot settings of a node to its spec
description:
  - Reads C(bios) and C(boot) of the node's spec, and the values in force from the node's BMC.
  - Orders what differs in the settings objects of the BMC, and resets the host once for all orders.
  - Reads the values back after the reset. Fails unless they are the spec's.
  - Fails before the first order, and names them, if the BIOS lacks attributes of the spec.
options:
  deadline_s:
    description: The limit in seconds of each wait for the start of the host.
    type: float
    default: 3600
author: [assay]
"""

EXAMPLES = r"""
- name: BIOS and boot settings
  assay.fleet.system_settings:
"""

RETURN = r"""
diff:
  description: The settings that differed, with the values before and after.
  type: list
  returned: success
"""
