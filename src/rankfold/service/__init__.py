"""The service: an index behind an API, and a page to look at it."""
