"""Documentation of assay.fleet.host_settings. The action plug-in of the same name does the work."""

DOCUMENTATION = r"""
module: host_settings
short_description: Read back the settings of the operating system with assay's probe
description:
  - Compares every declared setting of the operating system with the probe's readings.
  - If the running kernel, its command line or the GPU driver differ, restarts the host once through its BMC.
  - Fails, and names them, if settings still differ or cannot be read.
options:
  restart:
    description: Whether the host may be restarted. If not, the task fails where a restart is needed.
    type: bool
    default: true
  deadline_s:
    description: The limit in seconds of the wait for the host's start.
    type: float
    default: 3600
author: [assay]
"""

EXAMPLES = r"""
- name: Read back
  assay.fleet.host_settings:
"""

RETURN = r"""
boot_id:
  description: The boot id after a restart.
  type: str
  returned: when the host was restarted
"""
