"""What a node spec may declare of a host: settings of GPUs, adapters, kernel and services, files, and the wipe.

Files are as the role `host_files` has them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from posixpath import normpath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from assay.model.specs.spec_document import StrictModel


class ApplicationClocks(StrictModel):
    """The application clocks of a GPU, a pair that `nvidia-smi -q -d SUPPORTED_CLOCKS` lists.

    `memory_mhz`: the clock of its memory. `graphics_mhz`: the clock of its processors.
    """

    memory_mhz: int = Field(gt=0)
    graphics_mhz: int = Field(gt=0)


class GpuSettings(StrictModel):
    """The settings of all GPUs. A field that is not given is not checked, except for clocks and power limit.

    `persistence`: whether the driver stays loaded between jobs. `ecc`: whether the memory corrects errors. `mig`:
    whether the GPUs are partitioned. `compute_mode`: how many processes may use a GPU. `application_clocks`: the clocks
    of jobs; not given, they must not be below the default. `power_limit_w`: the requested power limit in watts; not
    given, it must not be below the default.
    """

    persistence: bool | None = None
    ecc: bool | None = None
    mig: bool | None = None
    compute_mode: Literal["default", "exclusive_process", "prohibited"] | None = None
    application_clocks: ApplicationClocks | None = None
    power_limit_w: int | None = Field(default=None, gt=0)


FirmwareSettingName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9_]*$")]
FirmwareSettingText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$")]
FirmwareSettingValue = bool | int | FirmwareSettingText
FirmwareSettingValues = dict[FirmwareSettingName, FirmwareSettingValue]


class HcaSettings(StrictModel):
    """Firmware settings by name, as `mstconfig` names them. What is not given is neither checked nor changed.

    `hcas`: the settings of all adapters of `hcas`. `nics`: the settings of all interfaces of `nics`. `by_name`: the
    settings of one adapter or interface, beside or instead of those.
    """

    hcas: FirmwareSettingValues = Field(default={})
    nics: FirmwareSettingValues = Field(default={})
    by_name: dict[str, FirmwareSettingValues] = Field(default={})


KernelName = Annotated[str, Field(pattern=r"^\w+$")]


def _refuse_letters_for_switches(text: str) -> str:
    """Refuse the letters that the kernel shows for a switch: the probe reads them as 1 and 0."""
    if text in ("Y", "N", "y", "n"):
        raise ValueError(f"write a switch as {'1' if text in 'Yy' else '0'}, not as {text}")
    return text


ModuleOption = Annotated[str, Field(pattern=r'^[^\s"\\#]+$'), AfterValidator(_refuse_letters_for_switches)]
ModuleOptions = dict[KernelName, dict[KernelName, ModuleOption]]
HugePages = dict[Annotated[str, Field(pattern=r"^[1-9]\d*kB$")], Annotated[int, Field(ge=0)]]


def list_option_names(modules: ModuleOptions) -> list[str]:
    """Return the declared options as `module.option`."""
    return [f"{module}.{option}" for module, options in modules.items() for option in options]


MAX_CONTENT = 64 * 1024
KERNEL_FOLDERS = ("/dev/", "/proc/", "/sys/")


def _require_plain_path(path: str) -> str:
    """Refuse paths that lead elsewhere than they say, and files of the kernel."""
    if {"", ".", ".."} & set(path.split("/")[1:]) or path.startswith(KERNEL_FOLDERS):
        raise ValueError(f"{path!r} is no path of a file on disk: write it without `.`, `..` and double slashes")
    return path


HostFilePath = Annotated[str, Field(pattern=r"^/[\w.@+/-]+$"), AfterValidator(_require_plain_path)]


class HostFile(StrictModel):
    """A file on the host. It holds no secrets: the spec is in git.

    `content`: its whole text. `mode`: its permissions, octal. `validate_with`: a command that must accept the new text
    before the file is replaced; `%s` is a file with the text. `apply_with`: a command that runs after a change, such as
    `systemctl restart slurmd`. If it fails, the old file is put back. No shell runs these commands.
    """

    content: str = Field(max_length=MAX_CONTENT)
    mode: str = Field(default="0644", pattern=r"^0[0-7]{3}$")
    validate_with: str | None = Field(default=None, pattern=r"%s")
    apply_with: str | None = Field(default=None, min_length=1)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content, as the probe reads it."""
        return hashlib.sha256(self.content.encode()).hexdigest()


UNIT_TYPES = ("service", "socket", "timer", "slice", "mount")
UnitName = Annotated[str, Field(pattern=rf"^[\w@:-][\w@.:-]*\.({'|'.join(UNIT_TYPES)})$")]
SettingName = Annotated[str, Field(pattern=r"^[A-Z]\w*$")]
SettingValue = Annotated[str, Field(pattern=r"^[^\s\\](.*[^\s\\])?$", max_length=1024)]
UnitSettings = dict[UnitName, dict[SettingName, SettingValue]]


WRITTEN_BY = "# assay writes this file from the node spec."


def list_setting_names(units: UnitSettings) -> list[str]:
    """Return the declared settings as `unit/Setting`."""
    return [f"{unit}/{setting}" for unit, settings in units.items() for setting in settings]


def make_drop_ins(units: UnitSettings) -> dict[str, dict[str, str]]:
    """Return the drop-in of each unit by path, and the command that applies it, as the role `host_files` takes them."""
    files = {}
    for unit, settings in units.items():
        section = unit.rpartition(".")[2].capitalize()
        lines = [WRITTEN_BY, f"[{section}]", *(f"{name}={text}" for name, text in settings.items())]
        files[f"/etc/systemd/system/{unit}.d/90-assay.conf"] = {
            "content": "\n".join(lines) + "\n",
            "mode": "0644",
            "apply_with": f"sh -c 'systemctl daemon-reload && systemctl try-restart {unit}'",
        }
    return files


def make_chrony_file(servers: Sequence[str]) -> dict[str, str]:
    """Return the file of chrony that names the servers, in the same form; nothing without servers."""
    if not servers:
        return {}
    lines = [WRITTEN_BY, *(f"server {server} iburst" for server in servers)]
    return {"content": "\n".join(lines) + "\n", "mode": "0644", "apply_with": "chronyc reload sources"}


WipeMethod = Literal["sanitize-crypto", "sanitize-block", "format-crypto", "format-erase"]
"""`nvme sanitize` by a new key or of all blocks; `nvme format` by a new key (`--ses=2`) or of user data (`--ses=1`)."""
WIPE_METHODS: tuple[WipeMethod, ...] = ("sanitize-crypto", "sanitize-block", "format-crypto", "format-erase")


_SYSTEM_MOUNTS = ("/boot", "/boot/efi", "/efi", "/etc", "/usr", "/var")


def _is_no_system(path: str) -> str:
    if normpath(path) in _SYSTEM_MOUNTS:
        raise ValueError(f"{path} belongs to the running system")
    return path


DataMount = Annotated[str, Field(pattern=r"^/[\w./-]+$"), AfterValidator(_is_no_system)]
"""A mount point that does not belong to the running system."""


class WipeSpec(StrictModel):
    """How the local drives are wiped. A drive that holds the running system is never wiped, but told.

    `models`: shell patterns of the model names of drives to wipe; all, by default. `methods`: in order of preference; a
    drive gets the first that it knows, and the next if its blocks can still be read after that. `unmount`: mount
    points that the wipe may unmount; a drive that is used for anything else is left alone. `unwiped`: what people do
    with a drive that was not wiped: `remove` it and shred it, or let the node `return` with it. `source`: the rule
    behind it.
    """

    models: list[str] = Field(default=["*"], min_length=1)
    methods: list[WipeMethod] = Field(default=[*WIPE_METHODS], min_length=1)
    unmount: list[DataMount] = Field(default=[])
    unwiped: Literal["remove", "return"] = "remove"
    source: str
