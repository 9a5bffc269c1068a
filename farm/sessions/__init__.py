"""Proofs step by step: opens sessions on workers, which are reached over the broker."""
