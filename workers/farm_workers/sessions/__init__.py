"""Proofs step by step: states of unfinished proofs in cells of their own, from which tactics branch."""
