"""The page of the service: runs, lines and verdicts for a person with a browser."""
