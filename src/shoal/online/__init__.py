"""The papers' algorithms, one file or folder each. Read `kernel_perceptron` first, the shortest."""
