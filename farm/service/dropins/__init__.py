"""Drop-in replacements of other checkers, for their existing clients: a module for each protocol."""
