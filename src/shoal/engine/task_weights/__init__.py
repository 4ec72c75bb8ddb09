"""Weights that belong to one task each: dense rows, or hash tables where few of many ever differ from zero."""
