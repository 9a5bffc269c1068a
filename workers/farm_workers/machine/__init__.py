"""Machine: this machine's isolation, environments and judges, for the worker loop and for commands."""
