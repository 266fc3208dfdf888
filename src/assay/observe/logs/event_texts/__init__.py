"""Takes a BMC's event log as ipmitool, FreeIPMI, Dell's racadm and HPE's iLO print it. Gives its entries, in order."""
