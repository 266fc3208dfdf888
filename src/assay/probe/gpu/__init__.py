"""Takes NVML, or nvidia-smi's XML; asks each GPU every reading by itself; gives the `gpu` branch."""
