"""Takes a node's state; does the NVIDIA driver, as a stub `libnvidia-ml.so.1`; gives NVML's answers."""
