"""Takes a node's state. Stands in for the tools on a node (nvidia-smi, fio, gpu-burn …).

Gives the real tools' output.
"""
