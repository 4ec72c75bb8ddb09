"""Experts on the row, its bins and its pairs: what depends on two features, or on one not in proportion."""
