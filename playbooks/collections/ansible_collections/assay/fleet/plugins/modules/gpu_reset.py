#!/usr/bin/python
"""assay.fleet.gpu_reset: resets GPUs with nvidia-smi, without the services and the mode that keep them open."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: gpu_reset
short_description: Reset GPUs of NVIDIA
description:
  - Stops the services that keep GPUs open, takes the persistence mode off, and resets the GPUs in one command
    (C(nvidia-smi --gpu-reset)), so that NVLink peers that are named go together.
  - Whatever became of the reset, the persistence mode and the services that start with the node come back.
  - A reset of a GPU that a process uses, or that needs more GPUs in the command, is refused by the driver.
options:
  addresses:
    description: The PCI addresses of the GPUs.
    type: list
    elements: str
    required: true
  persistent:
    description: Those that have the persistence mode on afterwards.
    type: list
    elements: str
    default: []
author: [assay]
"""
EXAMPLES = r"""
- name: Reset a GPU
  assay.fleet.gpu_reset:
    addresses: ["0000:1b:00.0"]
    persistent: ["0000:1b:00.0"]
"""
RETURN = r"""
output:
  description: What nvidia-smi printed.
  type: str
  returned: success
"""
HOLDERS = ["assay-agent", "nvidia-dcgm", "nvidia-persistenced"]


class ResetTool:
    """nvidia-smi and systemctl."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.program = module.get_bin_path("nvidia-smi", True)
        self.systemctl = module.get_bin_path("systemctl", True)

    def order(self, *words: str) -> tuple:
        """Run nvidia-smi, and return its exit code and what it printed."""
        code, output, trouble = self.module.run_command([self.program, *words])
        return code, (trouble or output).strip()

    def control(self, verb: str, unit: str) -> int:
        """Run systemctl, and return its exit code."""
        return self.module.run_command([self.systemctl, verb, unit])[0]

    def reset(self) -> str:
        """Reset the GPUs. Fails with what went wrong, after what was stopped has been started again."""
        addresses, persistent = (self.module.params[name] for name in ("addresses", "persistent"))
        for unit in [unit for unit in HOLDERS if self.control("is-active", unit) == 0]:
            self.control("stop", unit)
        troubles = []
        for address in addresses:
            code, text = self.order("-i", address, "-pm", "0")
            troubles += [f"persistence mode of {address}: {text}"] if code else []
        code, output = self.order("-r", "-i", ",".join(addresses))
        troubles += [f"nvidia-smi --gpu-reset: {output}"] if code else []
        for address in persistent:
            code, text = self.order("-i", address, "-pm", "1")
            troubles += [f"persistence mode of {address}: {text}"] if code else []
        for unit in HOLDERS:
            if self.control("is-enabled", unit) == 0 and self.control("is-active", unit) != 0:
                self.control("start", unit)
        if troubles:
            self.module.fail_json(msg="; ".join(troubles))
        return output


def main() -> None:
    """Run the module."""
    lists = {"type": "list", "elements": "str"}
    arguments = {"addresses": {**lists, "required": True}, "persistent": {**lists, "default": []}}
    module = AnsibleModule(arguments, supports_check_mode=True)
    tool = ResetTool(module)
    module.exit_json(changed=True, output="" if module.check_mode else tool.reset())


if __name__ == "__main__":
    main()
