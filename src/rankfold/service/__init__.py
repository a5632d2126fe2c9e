"""The service: an index behind HTTP."""
