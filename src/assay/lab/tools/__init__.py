"""Takes a node's state; does the tools on a node (nvidia-smi, fio, gpu-burn …); gives the real tools' output."""
