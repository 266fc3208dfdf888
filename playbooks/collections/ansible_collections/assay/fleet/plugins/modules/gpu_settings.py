#!/usr/bin/python
"""assay.fleet.gpu_settings: sets modes, clocks and power limit of all GPUs with nvidia-smi, and reads them back."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: gpu_settings
short_description: Set modes, clocks and power limit of GPUs
description:
  - Sets what differs on each GPU with C(nvidia-smi), and reads it back.
  - ECC counts from the next restart on. The module compares the mode that will count then.
options:
  settings:
    description: The C(gpu_settings) of a node spec. Only those that are given are compared.
    type: dict
    required: true
author: [assay]
"""
EXAMPLES = r"""
- name: GPU settings
  assay.fleet.gpu_settings:
    settings: {persistence: true, ecc: true, power_limit_w: 650}
"""
RETURN = r"""
changed_settings:
  description: The settings that differed, with the GPU's address.
  type: list
  returned: success
"""
SWITCH = {"Enabled": True, "Disabled": False}
COMPUTE_MODES = {"default": "0", "prohibited": "2", "exclusive_process": "3"}
COLUMNS = {
    "persistence": ["persistence_mode"],
    "ecc": ["ecc.mode.pending"],
    "mig": ["mig.mode.pending"],
    "compute_mode": ["compute_mode"],
    "application_clocks": ["clocks.applications.memory", "clocks.applications.graphics"],
    "power_limit_w": ["power.limit"],
}
OPTIONS = {
    "persistence": "-pm",
    "ecc": "-e",
    "mig": "-mig",
    "compute_mode": "-c",
    "application_clocks": "-ac",
    "power_limit_w": "-pl",
}


def format_option(name: str, wanted: object) -> str:
    """Return the value of the option of nvidia-smi that sets this."""
    if isinstance(wanted, bool):
        return str(int(wanted))
    if name == "application_clocks":
        return f"{wanted['memory_mhz']},{wanted['graphics_mhz']}"
    return COMPUTE_MODES[wanted] if name == "compute_mode" else str(wanted)


def parse_cells(name: str, cells: list) -> str:
    """Return what nvidia-smi printed of a setting, in the form of `format_option`; as printed if it is no value."""
    try:
        if name == "application_clocks":
            return ",".join(str(int(cell)) for cell in cells)
        if name == "power_limit_w":
            return f"{float(cells[0]):g}"
        if name == "compute_mode":
            return COMPUTE_MODES[cells[0].lower()]
        return str(int(SWITCH[cells[0]]))
    except (KeyError, ValueError):
        return ",".join(cells)


class GpuTool:
    """nvidia-smi, for the settings that are wanted."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.wanted = {name: value for name, value in module.params["settings"].items() if value is not None}
        self.program = module.get_bin_path("nvidia-smi", True)
        if unknown := sorted(set(self.wanted) - set(OPTIONS)):
            module.fail_json(msg=f"these are no settings of a GPU: {', '.join(unknown)}")

    def find_differing(self) -> list:
        """Return (address, setting, seen, wanted) of what differs."""
        names = [column for name in self.wanted for column in COLUMNS[name]]
        query = f"--query-gpu={','.join(['pci.bus_id', *names])}"
        code, output, trouble = self.module.run_command([self.program, query, "--format=csv,noheader,nounits"])
        if code:
            self.module.fail_json(msg=f"nvidia-smi: {(trouble or output).strip()}", rc=code)
        found = []
        for line in output.strip().splitlines():
            address, *cells = [cell.strip() for cell in line.split(",")]
            for name, value in self.wanted.items():
                own, cells = cells[: len(COLUMNS[name])], cells[len(COLUMNS[name]) :]
                seen, option = parse_cells(name, own), format_option(name, value)
                if seen != option:
                    found.append((address, name, seen, option))
        return found

    def set_one(self, address: str, name: str, option: str) -> None:
        """Set a setting of one GPU."""
        code, output, trouble = self.module.run_command([self.program, "-i", address, OPTIONS[name], option])
        if code:
            self.module.fail_json(msg=f"{name} of {address}: {(trouble or output).strip()}", rc=code)


def main() -> None:
    """Run the module."""
    module = AnsibleModule({"settings": {"type": "dict", "required": True}}, supports_check_mode=True)
    tool = GpuTool(module)
    differing = tool.find_differing() if tool.wanted else []
    if not module.check_mode:
        for address, name, _, option in differing:
            tool.set_one(address, name, option)
        if differing and (left := tool.find_differing()):
            texts = [f"{name} of {address} is {seen}, expected {option}" for address, name, seen, option in left]
            module.fail_json(msg=f"nvidia-smi did not set: {'; '.join(texts)}")
    before, after = ("".join(f"{one[1]} of {one[0]}: {one[side]}\n" for one in differing) for side in (2, 3))
    changed = [f"{name} of {address}" for address, name, _, _ in differing]
    module.exit_json(changed=bool(differing), changed_settings=changed, diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
