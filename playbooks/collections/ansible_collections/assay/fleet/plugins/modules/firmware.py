"""Documentation of assay.fleet.firmware. The action plug-in of the same name does the work."""

DOCUMENTATION = r"""
module: firmware
short_description: Bring components of a node's firmware bundle to their versions
description:
  - Reads the firmware inventory from the node's BMC and does nothing where it is equal to the bundle.
  - Takes over an update that is already running, else checks the artifact's sha256 and pushes it.
  - Waits for the update, does the reset that the components need, waits for the BMC, and reads the versions back.
  - Fails unless they are the bundle's.
options:
  components:
    description: Names of components of the node's firmware bundle. The components of one task share one reset.
    type: list
    elements: str
    required: true
  deadline_s:
    description: The limit in seconds of each wait (for a running update, for the BMC, for the versions).
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
  description: The version of every inventory id of the components, as read at the end.
  type: dict
  returned: always
pushed:
  description: The components for which an image was pushed. An update that was taken over is not pushed.
  type: list
  returned: always
"""
