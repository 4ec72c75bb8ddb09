"""The model: validated input in, state changed by kernels, saved and restored."""
