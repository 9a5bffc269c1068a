"""The page of the service, for people with a browser: runs, lines and verdicts."""
