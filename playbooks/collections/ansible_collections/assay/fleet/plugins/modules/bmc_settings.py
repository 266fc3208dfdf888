"""Documentation of assay.fleet.bmc_settings. The action plug-in of the same name does the work."""

DOCUMENTATION = r"""
module: bmc_settings
short_description: Bring the settings of a node's BMC to its spec
description:
  - Reads C(bmc) of the node's spec, and the settings from the node's BMC.
  - Writes only properties that differ, with the ETag of what was read. Reads them back.
  - Fails before the first change, and names them, if the BMC lacks properties of the spec.
options:
  read_back_s:
    description: The limit in seconds until the BMC must show the new settings.
    type: float
    default: 60
  check_passwords:
    description:
      - Log in once as each declared user, and set the password again if the BMC refuses it.
      - Without it, passwords are set only in accounts that are created, since a wrong login counts towards a lock-out.
    type: bool
    default: false
author: [assay]
"""

EXAMPLES = r"""
- name: Settings of the BMC
  assay.fleet.bmc_settings:
"""

RETURN = r"""
diff:
  description: The settings that differed, with the values before and after.
  type: list
  returned: success
"""
