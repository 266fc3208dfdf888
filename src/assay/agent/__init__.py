"""Runs on a node: follows its kernel log and its GPUs' events, and delivers what they say, once and in order."""
