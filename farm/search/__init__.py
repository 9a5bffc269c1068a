"""Proof search over sessions: expands states by a prover's tactics until one has no goals and is sealed."""
