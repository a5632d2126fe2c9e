"""The page as the real service hands it out."""


def test_page_opens(page):
    response = page.goto("/", wait_until="networkidle")
    assert response.status == 200
    assert "rankfold" in page.title().lower()


def test_browser_may_load_nothing_from_elsewhere(page, watch):
    page.goto("/")
    page.evaluate("() => fetch('http://127.0.0.1:9/').catch(() => {})")
    watch.expect("Content Security Policy")
    watch.troubles.clear()  # how else it is told depends on the version of the browser


def test_digits_have_a_map_and_pictures(page):
    page.goto("/")
    info = page.evaluate("() => fetch('/v1/indexes/digits').then(answer => answer.json())")
    assert info["layout"] == "graph"
    assert (info["image"]["width"], info["image"]["height"]) == (8, 8)
