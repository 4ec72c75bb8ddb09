"""The default: experts that learn and share in different ways, mixed row by row."""
