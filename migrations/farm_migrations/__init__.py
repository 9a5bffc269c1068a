"""Migrates the store's schema for `farm db`, one revision after the other; revisions have no downgrade."""
