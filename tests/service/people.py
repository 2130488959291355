"""What people do in the page, for tests that drive a real browser."""

from typing import Any

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"], "missing": True},
    {"name": "age", "kind": "integer", "low": 18, "high": 89, "step": 6},
    {"name": "income", "kind": "number", "edges": [0, 10000, 20000, 50000], "missing": True},
    {"name": "born", "kind": "date", "low": "1930-01-01", "high": "2010-12-31", "step": "year"},
    {"name": "town", "kind": "category", "values": [f"شهر {n}" for n in range(12)], "other": True},
]
WORDS = {
    "title": "سلامت شهر ما",
    "text": "For the health report of our town.\nThank you!",
    "questions": {
        "smoker": "آیا سیگار می کشید؟",
        "age": "你多大年紀？",
        "health": "How is your health?",
    },
}
_SHELF = """
    (mode, ask) => new Promise((resolve, reject) => {
      const opening = indexedDB.open("sfumato surveys", 1);
      opening.onerror = reject;
      opening.onsuccess = () => {
        const transaction = opening.result.transaction("texts", mode);
        const asked = ask(transaction.objectStore("texts"));
        transaction.oncomplete = () => { opening.result.close(); resolve(asked.result); };
      };
    })
"""
FIRST, SECOND = 0, 1
"""What the coin for the round shows."""


def listen(page: Any) -> list[Any]:
    """The requests that this page posts from now on."""
    posted: list[Any] = []
    page.on("request", lambda request: posted.append(request) if request.method == "POST" else None)
    return posted


def shelved(page: Any) -> list[str]:
    """The texts that the browser keeps for the page, one for each survey."""
    return list(page.evaluate(f"({_SHELF})('readonly', (texts) => texts.getAll())"))


def put_back(page: Any, text: str) -> None:
    """Another text in the place of the one that is kept."""
    (name,) = page.evaluate(f"({_SHELF})('readonly', (texts) => texts.getAllKeys())")
    put = f"([text, name]) => ({_SHELF})('readwrite', (texts) => texts.put(text, name))"
    page.evaluate(put, [text, name])


def heading(page: Any) -> str:
    """What the page is about now."""
    page.wait_for_selector("main h2")
    return str(page.inner_text("main h2"))


def open_with_coin(visit: Any, made: Any, coin: int, **options: Any) -> Any:
    """A page whose first coin is known: what is random in it begins with so many ones."""
    page = visit(made.running.address + "/healthz", allow=(made.running.address,), **options)
    page.context.add_init_script(
        "{ const real = crypto.getRandomValues.bind(crypto); let first = true;"
        "crypto.getRandomValues = (words) => { real(words);"
        f"if (first) words.fill({coin}n); first = false; return words; }} }}"
    )
    page.goto(made.link(made.invite()))
    return page


def fill_in(page: Any) -> None:
    """Answer all questions of ``COLUMNS``."""
    page.check("#question-0-1")
    page.check("#question-1-3")
    page.fill("#question-2", "۳۴")
    page.fill("#question-3", "23456.5")
    page.fill("#question-4", "1984-05-06")
    page.select_option("#question-5", "7")


def draw(page: Any) -> str:
    """From the beginning to the preview; the bytes that it shows."""
    page.click("#go")
    fill_in(page)
    page.click("#draw")
    page.wait_for_selector("#body")
    return str(page.text_content("#body"))


def send(page: Any) -> None:
    """Send what is shown, and wait for the receipt."""
    page.click("#send")
    page.wait_for_selector("dl.facts")


def tab_to(page: Any, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {selector}")
