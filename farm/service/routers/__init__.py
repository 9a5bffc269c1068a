"""The service's own HTTP calls, a router for each subject; a handler is registered where it is written."""
