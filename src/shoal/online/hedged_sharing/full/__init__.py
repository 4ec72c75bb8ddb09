"""Experts with full matrices: second-order learning that drifts."""
