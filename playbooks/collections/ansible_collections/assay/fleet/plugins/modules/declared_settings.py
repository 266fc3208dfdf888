"""Documentation of assay.fleet.declared_settings. The action plug-in of the same name does the work."""

DOCUMENTATION = r"""
module: declared_settings
short_description: Return what the node's spec declares for each role
description:
  - Returns the settings of the operating system that the node's spec declares. Changes nothing.
options: {}
author: [assay]
"""

EXAMPLES = r"""
- name: Declared settings
  assay.fleet.declared_settings:
  register: declared
"""

RETURN = r"""
settings:
  description: The values by role, such as C(sysctls). An empty value means that the spec declares nothing.
  type: dict
  returned: success
managed:
  description: Whether the node's management profile lets assay change its operating system.
  type: bool
  returned: success
root:
  description: The folder that is the node's root, "" for a real node. A virtual node of the lab has another one.
  type: str
  returned: success
"""
