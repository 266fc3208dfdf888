"""Takes NVML, or nvidia-smi's XML. Asks each GPU for each reading by itself. Gives the `gpu` branch."""
