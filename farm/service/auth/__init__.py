"""Access to the service: which requests pass, with which key and scope, and how much a key may use."""
