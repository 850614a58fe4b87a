"""Kernels of a small language model."""
