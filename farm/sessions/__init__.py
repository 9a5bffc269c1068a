"""Proofs step by step, for those who ask: sessions on workers, reached over the broker."""
