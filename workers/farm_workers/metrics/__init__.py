"""The Prometheus metrics of a worker; docs/reference/metrics.md explains each of them.

`farm_workers.metrics.events` has a function for each event, which does nothing unless metrics are served.
"""
