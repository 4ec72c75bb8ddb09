"""What the papers claim, as data; a rule decides each from stored runs, and nobody writes a verdict."""
