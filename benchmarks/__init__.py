"""Speed of shoal beside its peers on the same rows, in one run: `python -m benchmarks`."""
