"""Report step: what the verdicts of one or several runs say together, as figures, text and one HTML page."""
