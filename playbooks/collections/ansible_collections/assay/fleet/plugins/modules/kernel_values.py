#!/usr/bin/python
"""assay.fleet.kernel_values: writes values of the running kernel below /proc and /sys, and reads them back."""

from __future__ import annotations

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: kernel_values
short_description: Set values of the running kernel
description:
  - Writes values below C(/proc) and C(/sys), only where they differ, and reads them back.
  - Blanks between numbers do not count. In a list of choices such as C(always [madvise] never), the value in brackets
    counts.
options:
  values:
    description: The wanted text by path. A path may be a pattern such as C(/sys/.../policy*/scaling_governor).
    type: dict
    required: true
author: [assay]
"""
EXAMPLES = r"""
- name: Values of the running kernel
  assay.fleet.kernel_values:
    values: {/proc/sys/vm/swappiness: "10"}
"""
RETURN = r"""
changed_paths:
  description: The paths whose value differed.
  type: list
  returned: success
"""
ROOT = os.environ.get("ASSAY_ROOT", "")


def read_value(path: str) -> str:
    """Return a value as one line."""
    text = " ".join(Path(path).read_text().split())
    return text.split("[", 1)[1].split("]", 1)[0] if "[" in text and "]" in text else text


def main() -> None:
    """Run the module."""
    module = AnsibleModule({"values": {"type": "dict", "required": True}}, supports_check_mode=True)
    wanted = {}
    for pattern, text in module.params["values"].items():
        paths = sorted(str(path) for path in Path(ROOT or "/").glob(pattern.lstrip("/")))
        if not paths:
            module.fail_json(msg=f"this kernel has no {pattern}")
        wanted.update(dict.fromkeys(paths, " ".join(str(text).split())))
    try:
        differing = {path: (read_value(path), text) for path, text in wanted.items() if read_value(path) != text}
        if not module.check_mode:
            for path, (_, text) in differing.items():
                Path(path).write_text(text + "\n")
        left = [] if module.check_mode else [path for path, (_, text) in differing.items() if read_value(path) != text]
    except OSError as error:
        module.fail_json(msg=f"{error.filename or 'a value'}: {error.strerror}")
    if left:
        module.fail_json(msg="the kernel did not take " + ", ".join(f"{wanted[path]!r} for {path}" for path in left))
    before, after = ("".join(f"{path}: {pair[side]}\n" for path, pair in differing.items()) for side in (0, 1))
    module.exit_json(changed=bool(differing), changed_paths=list(differing), diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
