"""Takes sysfs and the firmware tables; reads PCI, HCA, NIC, NVMe, DIMMs and hardware error counters; gives a branch for each."""
