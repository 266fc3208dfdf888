"""How faults are recognised: in messages of a kernel, in events of a BMC, in counts.

Takes messages, events and readings. Gives sightings, and the record of a fault.
"""
