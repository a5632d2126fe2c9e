"""What a page must not do, whatever a test is about."""

import re

READING_BACK = "GPU stall due to ReadPixels"
"""So a graphics driver in software says that a screenshot was taken."""


class Watch:
    """Troubles of a page: errors, warnings, failed requests, and requests to elsewhere."""

    def __init__(self, page, address):
        self.page, self.address, self.troubles = page, address, []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("requestfailed", self._failed)

    def expect(self, pattern):
        """Take back troubles that a test brings about; there must be some."""
        found = [trouble for trouble in self.troubles if re.search(pattern, trouble)]
        assert found, f"no trouble matches {pattern!r}, there are: {self.troubles}"
        self.troubles = [trouble for trouble in self.troubles if trouble not in found]

    def check(self):
        """Fail if there was any."""
        assert not self.troubles, "\n".join(self.troubles)

    def _console(self, message):
        if message.type in ("error", "warning", "assert") and READING_BACK not in message.text:
            self.troubles.append(f"console {message.type}: {message.text}")

    def _request(self, request):
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.troubles.append(f"request to elsewhere: {request.url}")

    def _failed(self, request):
        # A page may give up what it asked for, when the next question is there already.
        if request.failure != "net::ERR_ABORTED":
            self.troubles.append(f"request failed: {request.url} ({request.failure})")
