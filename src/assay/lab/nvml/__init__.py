"""The NVIDIA driver of a virtual node: a stub `libnvidia-ml.so.1`, and what it answers."""
