"""The model: validated input in, state changed by kernels, saved and restored.

Read `algorithm` first (an algorithm as a value), then `core` (an algorithm at work), `model` (admission, learning,
forgetting) and `state`. `table`, `tasks`, `features`, `targets` and `sample_weight` read input; `persistence` is the
file.
"""
