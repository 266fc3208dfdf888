"""Takes a compiled fabric design. Does the virtual cables, and changes to them. Gives what ibnetdiscover, ibqueryerrors, sminfo and telemetry print."""
