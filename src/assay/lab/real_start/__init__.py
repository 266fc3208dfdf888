"""Takes a kernel of the distribution and qemu. Gives the lab a machine whose firmware, iPXE and kernel are real."""
