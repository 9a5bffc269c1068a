"""Report step: evaluates the verdicts of one or several runs as figures, text and one HTML page."""
