"""Datasets step: local copies of public benchmarks become manifests."""
