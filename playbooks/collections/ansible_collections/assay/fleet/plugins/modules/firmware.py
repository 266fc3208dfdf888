"""Documentation of assay.fleet.firmware; the work is done by the action plugin of the same name."""

DOCUMENTATION = r"""
module: firmware
short_description: Bring components of a node's firmware bundle to their versions
description:
  - Reads the firmware inventory from the node's BMC and does nothing where it is equal to the bundle.
  - Adopts an update that is already running, else checks the artifact's sha256 and pushes it.
  - Follows the update, resets what the components need, waits for the BMC and reads back. Fails unless equal.
options:
  components:
    description: Names of components of the node's firmware bundle; those of one task share one reset.
    type: list
    elements: str
    required: true
  deadline_s:
    description: How many seconds each wait (for a running update, for the BMC, for the read-back) may take.
    type: float
    default: 3600
author: [assay]
"""

EXAMPLES = r"""
- name: BIOS
  assay.fleet.firmware:
    components: [bios]
"""

RETURN = r"""
firmware:
  description: Every inventory id of the components with the version that was read back.
  type: dict
  returned: always
pushed:
  description: The components for which an image was pushed (an adopted update is not pushed).
  type: list
  returned: always
"""
