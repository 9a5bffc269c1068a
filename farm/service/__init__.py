"""The farm over HTTP, for clients on any machine: batches in, verdicts and rewards out, from any replica."""
