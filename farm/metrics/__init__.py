"""Metrics for Prometheus: serves a process's metrics, and reads those of the whole farm from the store."""
