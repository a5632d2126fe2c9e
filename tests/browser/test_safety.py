"""What the browser is not allowed to do."""


def test_browser_may_load_nothing_from_elsewhere(page, watch):
    page.goto("/")
    page.evaluate("() => fetch('http://127.0.0.1:9/').catch(() => {})")
    watch.expect("Content Security Policy")
    watch.troubles.clear()  # how else it is told depends on the version of the browser


def test_browser_runs_no_script_within_the_page(shown, page, watch):
    shown.open()
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.struck = 1';
            document.body.append(script);
        }"""
    )
    assert page.evaluate("() => window.struck") is None
    watch.expect("Content Security Policy")


def test_the_page_may_not_be_framed(page):
    headers = page.goto("/").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
