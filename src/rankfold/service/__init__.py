"""The service: an index over HTTP, with a page to look at."""

from rankfold.service.app import create_app
from rankfold.service.limits import Settings

__all__ = ["Settings", "create_app"]
