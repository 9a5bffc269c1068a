"""Metrics for Prometheus: how they are served, and those of the farm as a whole, read from the store."""
