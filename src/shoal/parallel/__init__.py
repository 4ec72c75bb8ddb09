"""Threads: how many there are, and how work goes through them."""
