"""Takes a node's state. Does the tools on a node (nvidia-smi, fio, gpu-burn …). Gives the real tools' output."""
