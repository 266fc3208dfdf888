"""Takes NVML. Asks each GPU for each reading by itself. Gives the `gpu` branch."""
