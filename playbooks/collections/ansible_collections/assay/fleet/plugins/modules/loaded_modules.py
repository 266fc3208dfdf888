#!/usr/bin/python
"""assay.fleet.loaded_modules: loads kernel modules with modprobe, and reads /proc/modules again."""

from __future__ import annotations

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: loaded_modules
short_description: Load kernel modules
description:
  - Loads the modules that are not loaded, with C(modprobe), and reads C(/proc/modules) again.
options:
  names:
    description: The names of the modules.
    type: list
    elements: str
    required: true
author: [assay]
"""
EXAMPLES = r"""
- name: Kernel modules
  assay.fleet.loaded_modules:
    names: [nvidia_peermem]
"""
RETURN = r"""
loaded:
  description: The modules that were not loaded before.
  type: list
  returned: success
"""
ROOT = os.environ.get("ASSAY_ROOT", "")


def list_loaded(module: AnsibleModule) -> set[str]:
    """Return the names of the modules that are loaded, and of those that are built into the kernel."""
    loaded = {line.split()[0] for line in Path(f"{ROOT}/proc/modules").read_text().splitlines() if line.strip()}
    return loaded | {name for name in module.params["names"] if Path(f"{ROOT}/sys/module/{name}").is_dir()}


def main() -> None:
    """Run the module."""
    module = AnsibleModule({"names": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True)
    names = [name.replace("-", "_") for name in module.params["names"]]
    missing = [name for name in names if name not in list_loaded(module)]
    if missing and not module.check_mode:
        code, _, trouble = module.run_command([module.get_bin_path("modprobe", True), "-a", *missing])
        left = [name for name in missing if name not in list_loaded(module)]
        if left:
            module.fail_json(msg=f"modprobe did not load {', '.join(left)}: {trouble.strip()}", rc=code)
    after = "".join(f"{name}\n" for name in missing)
    module.exit_json(changed=bool(missing), loaded=missing, diff={"before": "", "after": after})


if __name__ == "__main__":
    main()
