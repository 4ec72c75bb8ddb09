"""Experts on the scaled row itself."""
