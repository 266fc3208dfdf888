"""Takes a node's state. Does one Redfish resource each (system, chassis, sensors, BIOS, logs, update, accounts, events). Gives the JSON that a GET returns."""
