"""Documentation of assay.fleet.firmware. The action plug-in of the same name does the work."""

DOCUMENTATION = r"""
module: firmware
short_description: Bring a node's firmware to its bundle
description:
  - Works through the stages of the node's firmware bundle, the lowest order first. What shares one order is one stage,
    and shares one reset.
  - Reads the firmware inventory from the node's BMC and does nothing where it is equal to the bundle.
  - Takes over an update that is already running, else checks the artifact's sha256 and pushes it.
  - Waits for the update, does the reset that the stage needs, waits for the BMC, and reads the versions back. If one
    reset changes nothing, a second one follows.
  - Pushes an image once. It pushes again only after an update of somebody else that it took over.
  - Fails unless the versions are the bundle's, and still are at the end. The stages after a failure are left alone.
options:
  components:
    description:
      - Names of components of the bundle. They are one stage, whatever their order.
      - Without it, the task brings all components of the bundle, stage by stage.
    type: list
    elements: str
  deadline_s:
    description: The limit in seconds of each wait (for a running update, for the BMC, for the versions).
    type: float
    default: 3600
  read_back_s:
    description: How many seconds the BMC may answer with old versions after update and reset.
    type: float
    default: 120
  steady_s:
    description: How many seconds the new versions must hold, at the end of the task.
    type: float
    default: 30
author: [assay]
"""

EXAMPLES = r"""
- name: Firmware of the node's bundle
  assay.fleet.firmware:

- name: Only the BIOS
  assay.fleet.firmware:
    components: [bios]
"""

RETURN = r"""
stages:
  description:
    - Each stage with its C(name), whether it C(changed), and the C(firmware), by inventory id, as read at its end.
    - C(pushed) says for each component why its image was pushed, and C(resets) names the resets.
    - In check mode, C(reset) names the reset that would follow.
  type: list
  returned: always
firmware:
  description: The version of every inventory id of the components, as read at the end.
  type: dict
  returned: always
pushed:
  description: The components for which an image was pushed. An update that was taken over is not pushed.
  type: list
  returned: always
diff:
  description: The inventory ids whose version differs, a part for each stage that changes.
  type: list
  returned: always
"""
