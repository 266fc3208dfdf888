"""Reads the facts of ports and switches that a site's own telemetry writes, as one JSON document.

```
{"schema": "assay.fabric-facts/1",
 "ports":    [{"guid": "0x…", "port": 1, "ber": {"symbol": 1e-16}, "module": {"temperature_c": 48.0, "vendor": "…"},
               "pkeys": ["0xffff"]}],
 "switches": [{"guid": "0x…", "firmware": "31.2014", "temperature_c": 61.0, "psus": {"1": "ok"}, "fans": {"1": 8e3}}]}
```

It carries what no fabric-wide tool prints: mlxlink reads one port a time, and only the switches' own management knows
fans and power supplies. Names are those of PortFacts and SwitchFacts. A site leaves out what it does not know.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from assay.fabric.discovery import ModuleValue, PortFacts
from assay.fabric.health.switch_facts import SwitchFacts
from assay.model.specs.fabric.design_cables_and_partitions import DeviceGuid
from assay.model.specs.fabric.ports_and_cables import PortId
from assay.model.specs.spec_document import StrictModel

SCHEMA = "assay.fabric-facts/1"
Pkey = Annotated[str, Field(pattern="^0x[0-9a-f]{4}$")]


class PortTelemetry(StrictModel):
    """One port. Lanes are lists, in order; `pkeys` is its whole partition table, 16 bits an entry.

    `fec_bins` counts blocks by the number of their wrong symbols, from none upwards.
    """

    guid: DeviceGuid
    port: int = Field(ge=0, le=254)
    rate: str = ""
    counters: dict[str, int] = Field(default_factory=dict)
    ber: dict[str, float] = Field(default_factory=dict)
    module: dict[str, Annotated[ModuleValue, Field(union_mode="left_to_right")]] = Field(default_factory=dict)
    pkeys: list[Pkey] | None = None
    fec_bins: list[Annotated[int, Field(ge=0)]] = Field(default=[], max_length=64)

    def to_port_facts(self) -> PortFacts:
        """Return the PortFacts that readers give."""
        pkeys = None if self.pkeys is None else frozenset(int(key, 16) for key in self.pkeys)
        here = PortId(self.guid, self.port)
        return PortFacts(
            here, "", "", self.rate, self.counters, self.ber, self.module, pkeys=pkeys, fec_bins=tuple(self.fec_bins)
        )


class SwitchTelemetry(StrictModel):
    """One switch: the state of power supplies by name (`ok` or what is wrong), the speed of fans by name in rpm."""

    guid: DeviceGuid
    firmware: str = ""
    temperature_c: float | None = None
    psus: dict[str, str] = Field(default_factory=dict)
    fans: dict[str, float] = Field(default_factory=dict)


class FabricTelemetry(StrictModel):
    """The whole document."""

    schema_: str = Field(alias="schema", pattern=f"^{SCHEMA}$")
    ports: list[PortTelemetry] = Field(default=[])
    switches: list[SwitchTelemetry] = Field(default=[])


def is_telemetry(text: str) -> bool:
    """Return whether a text claims to be such a document."""
    return text.lstrip().startswith("{") and f'"{SCHEMA}"' in text[:200]


def parse_telemetry(text: str) -> tuple[list[PortFacts], list[SwitchFacts], list[str]]:
    """Return the ports, the switches, and the problems. Never raises. A document with a problem gives nothing else."""
    try:
        telemetry = FabricTelemetry.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "the document"
        return [], [], [f"{place}: {first['msg']}"]
    switches = [
        SwitchFacts(switch.guid, switch.firmware, switch.temperature_c, switch.psus, switch.fans)
        for switch in telemetry.switches
    ]
    return [port.to_port_facts() for port in telemetry.ports], switches, []
