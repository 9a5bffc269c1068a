"""Datasets step: makes manifests from local copies of public benchmarks."""
