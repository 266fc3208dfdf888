"""Air and water: fans, the temperature that comes in, what looks for leaks."""

from __future__ import annotations

from assay.lab.bmc import health
from assay.lab.bmc.chassis import FANS, PATH, THERMAL, part_status
from assay.lab.bmc.tree import Resource, View, collection, link, resource, slot

LEAKS, DETECTORS = f"{THERMAL}/LeakDetection", f"{THERMAL}/LeakDetection/LeakDetectors"


def thermal_subsystem(view: View) -> Resource:
    """The thermal subsystem; what looks for leaks is only there where there is water."""
    fans = [link(f"{FANS}/{n}") for n in range(len(view.state["fans"]))]
    group = {"RedundancyType": "NPlusM", "RedundancyGroup": fans, "MinNeededInGroup": max(1, len(fans) - 1)}
    return resource(
        "ThermalSubsystem",
        "1_3_2",
        "ThermalSubsystem",
        "Thermal",
        Fans=link(FANS),
        FanRedundancy=[{**group, "Status": health.rolled(health.worst(fan["health"] for fan in view.state["fans"]))}],
        ThermalMetrics=link(f"{THERMAL}/ThermalMetrics"),
        Status=health.rolled(health.cooling(view.state)),
        **({"LeakDetection": link(LEAKS)} if view.state["box"]["leaks"] else {}),
    )


def fans(view: View) -> Resource:
    """All fans."""
    return collection("Fan", "Fans", [f"{FANS}/{n}" for n in range(len(view.state["fans"]))])


def fan(view: View, number: str) -> Resource:
    """One fan."""
    part = slot(view.state["fans"], number)
    speed = {"SpeedRPM": part["rpm"], "DataSourceUri": link(f"{PATH}/Sensors/FAN_{number}_SPEED")["@odata.id"]}
    return resource("Fan", "1_5_2", number, f"Fan {number}", Status=part_status(part), SpeedPercent=speed)


def thermal_metrics(view: View) -> Resource:
    """The temperature of the air that comes in."""
    source = link(f"{PATH}/Sensors/TEMP_INLET")["@odata.id"]
    intake = {"Reading": view.state["inlet_c"], "DataSourceUri": source}
    return resource(
        "ThermalMetrics",
        "1_3_2",
        "ThermalMetrics",
        "Thermal metrics",
        TemperatureSummaryCelsius={"Intake": intake},
        TemperatureReadingsCelsius=[{**intake, "DeviceName": "Inlet"}],
    )


def leak_detection(view: View) -> Resource:
    """What looks for leaks, as a whole."""
    if not view.state["box"]["leaks"]:
        raise LookupError(LEAKS)
    return resource(
        "LeakDetection",
        "1_1_0",
        "LeakDetection",
        "Leak detection",
        Status=health.rolled(health.leaks(view.state)),
        LeakDetectors=link(DETECTORS),
    )


def detectors(view: View) -> Resource:
    """All that looks for leaks."""
    count = len(view.state["box"]["leaks"])
    if not count:
        raise LookupError(DETECTORS)
    return collection("LeakDetector", "Leak detectors", [f"{DETECTORS}/LEAK_{n}" for n in range(count)])


def detector(view: View, ident: str) -> Resource:
    """One rope or tray that looks for water."""
    kind, _, number = ident.rpartition("_")
    leak = slot(view.state["box"]["leaks"], number)
    if kind != "LEAK":
        raise LookupError(ident)
    level = leak["state"]
    return resource(
        "LeakDetector",
        "1_2_0",
        ident,
        ident,
        LeakDetectorType="Moisture",
        DetectorState=level,
        Status={"State": "Enabled", "Health": health.LEAK[level]},
    )
