"""Manifest step: reads lines as entries, and replaces files."""
