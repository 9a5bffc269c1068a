"""What a worker counts for Prometheus; docs/reference/metrics.md says what each metric means.

`farm_workers.metrics.events` has a function for each event, which does nothing unless metrics are served.
"""
