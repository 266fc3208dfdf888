"""Takes a node's state. Does the NVIDIA driver, as a stub `libnvidia-ml.so.1`. Gives NVML's answers."""
