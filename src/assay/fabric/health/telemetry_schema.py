"""Facts of ports and switches as any site's own telemetry can hand them over: one JSON document.

```
{"schema": "assay.fabric-facts/1",
 "ports":    [{"guid": "0x…", "port": 1, "ber": {"symbol": 1e-16}, "module": {"temperature_c": 48.0, "vendor": "…"},
               "pkeys": ["0xffff"]}],
 "switches": [{"guid": "0x…", "firmware": "31.2014", "temperature_c": 61.0, "psus": {"1": "ok"}, "fans": {"1": 8e3}}]}
```

For what no fabric-wide tool prints: mlxlink asks one port a time, and fans and power supplies are known to the
switches' own management only. Names are those of PortFacts; what a site does not know it leaves out.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from assay.fabric.discovery import ModuleValue, PortFacts
from assay.fabric.health.switch_facts import SwitchFacts
from assay.model.fabric.design_cables_and_partitions import DeviceGuid
from assay.model.fabric.ports_and_cables import PortId
from assay.model.specs.spec_document import StrictModel

SCHEMA = "assay.fabric-facts/1"
Pkey = Annotated[str, Field(pattern="^0x[0-9a-f]{4}$")]


class PortTelemetry(StrictModel):
    """One port. Lanes are lists, in order; `pkeys` is its whole partition table, 16 bits an entry."""

    guid: DeviceGuid
    port: int = Field(ge=0, le=254)
    rate: str = ""
    counters: dict[str, int] = Field(default_factory=dict)
    ber: dict[str, float] = Field(default_factory=dict)
    module: dict[str, Annotated[ModuleValue, Field(union_mode="left_to_right")]] = Field(default_factory=dict)
    pkeys: list[Pkey] | None = None

    def to_port_facts(self) -> PortFacts:
        """Return it as every reader does."""
        pkeys = None if self.pkeys is None else frozenset(int(key, 16) for key in self.pkeys)
        here = PortId(self.guid, self.port)
        return PortFacts(here, "", "", self.rate, self.counters, self.ber, self.module, pkeys=pkeys)


class SwitchTelemetry(StrictModel):
    """One switch: power supplies by name with `ok` or what ails them, fans by name in turns a minute."""

    guid: DeviceGuid
    firmware: str = ""
    temperature_c: float | None = None
    psus: dict[str, str] = Field(default_factory=dict)
    fans: dict[str, float] = Field(default_factory=dict)


class FabricTelemetry(StrictModel):
    """The document."""

    schema_: str = Field(alias="schema", pattern=f"^{SCHEMA}$")
    ports: list[PortTelemetry] = Field(default=[])
    switches: list[SwitchTelemetry] = Field(default=[])


def is_telemetry(text: str) -> bool:
    """Say whether a text claims to be such a document."""
    return text.lstrip().startswith("{") and f'"{SCHEMA}"' in text[:200]


def parse_telemetry(text: str) -> tuple[list[PortFacts], list[SwitchFacts], list[str]]:
    """Return the ports, the switches, and what could not be read. Never raises; a document with a flaw says nothing."""
    try:
        said = FabricTelemetry.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "the document"
        return [], [], [f"{place}: {first['msg']}"]
    switches = [SwitchFacts(one.guid, one.firmware, one.temperature_c, one.psus, one.fans) for one in said.switches]
    return [one.to_port_facts() for one in said.ports], switches, []
