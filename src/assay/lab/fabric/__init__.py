"""Takes a compiled fabric design. Makes the virtual cables and changes to them.

Gives the output of ibnetdiscover, lldpctl, ibqueryerrors, sminfo and of port telemetry.
"""
