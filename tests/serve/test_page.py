"""The page in a browser: it shows what is learned while it is learned, and no name is markup."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright
from tests.serve.material import records, rows, write_model
from tests.serve.test_http import served

from shoal import MultitaskPerceptron
from shoal.serve.engine import Engine
from shoal.serve.http.access import ADMIN, READ, Token
from shoal.serve.page import content

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ["background-networking", "component-update", "sync", "quic", "gpu"]
NASTY = "<img src=x onerror=alert(1)>/.. ?#&%41"
N_TASKS = 120

# The contrast of every text that is shown to what is behind it, the least first (WCAG 2: 4.5 is readable).
CONTRASTS = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => parts(color).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if ((parts(color)[3] ?? 1) === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !one.checkVisibility() || one.closest("noscript, title")) continue;
    const style = getComputedStyle(one), inside = one instanceof SVGElement;
    const [a, b] = [light(inside ? style.fill : style.color), light(behind(one))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), text]);
  }
  return found.sort((x, y) => x[0] - y[0]);
}"""
NOTHING_CUT = "[...document.querySelectorAll('section, dialog')].every((one) => one.scrollWidth <= one.clientWidth)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)]
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield found
        found.close()


@pytest.fixture(scope="module", autouse=True)
def events_come_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(content, "SECONDS", 0.2)
        yield


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("page")
    with Engine(write_model(folder), folder / "engine") as found:
        mails = records(3_000, seed=50)
        for i, mail in enumerate(mails):
            mail["user"] = NASTY if i < 50 else f"user {i % N_TASKS}"
        for i in range(0, 3_000, 100):
            found.learn(rows(mails[i : i + 100])).result()
        assert found.wait_until_learned(timeout=60)
        yield found


@pytest.fixture(scope="module")
def url(engine: Engine) -> Iterator[str]:
    with served(engine, []) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """With a record of what went wrong, and of requests that leave the service."""
    context = browser.new_context()
    found, wrong = context.new_page(), list[str]()
    found.set_default_timeout(10_000)

    def alerted(dialog: Dialog) -> None:
        wrong.append(dialog.message)
        dialog.dismiss()

    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("dialog", alerted)
    hosts = set[str]()
    found.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    yield found
    context.close()
    assert not wrong
    assert len(hosts) == 1


def learn(engine: Engine, n: int, **changes: Any) -> None:
    engine.learn(rows([{**mail, **changes} for mail in records(n, seed=51)])).result()
    assert engine.wait_until_learned(timeout=60)


def fact(page: Page, name: str) -> str:
    return page.locator(".facts div:visible", has_text=name).locator("dd").inner_text()


def test_no_file_names_another_origin(url: str) -> None:
    for path in ("/", *(f"/page/{name}" for name in content.KINDS)):
        answer = httpx.get(url + path)
        assert answer.status_code == 200
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "://" not in answer.text.replace("http://www.w3.org/2000/svg", ""), path
    assert httpx.get(f"{url}/page/content.py").status_code == 404


def test_it_shows_what_is_learned_while_it_is_learned(engine: Engine, url: str, page: Page) -> None:
    before = engine.statistics.rows
    page.goto(url)
    expect(page.locator("#status")).to_have_text("live")
    expect(page.locator("h1")).to_have_text("engine")  # the folder's name
    error = engine.gauges()["error"]
    expect(page.locator("#sentence")).to_contain_text(f"Forecasts whether spam is yes for {N_TASKS + 7} users.")
    expect(page.locator("#sentence")).to_contain_text(f"It is wrong in {100 * error:.0f}\u00a0% of cases so far")
    expect(page.locator("#sentence")).to_contain_text("Sharing")
    worst = engine.list_tasks("loss", "", 0, 1)[0][0]
    expect(page.locator("#worst tr").first).to_contain_text(str(worst["task"]))
    expect(page.locator("#worst tr").first).to_contain_text(f"{worst['loss']:.2f}")
    expect(page.locator("#errors polyline")).to_have_count(3)  # the learner and two shadows
    expect(page.locator("#losses polyline")).to_have_count(3)
    shown = sum(n >= 20 for n in engine.statistics.state()["calibration"][0])
    expect(page.locator("#calibration circle")).to_have_count(shown)
    page.get_by_text("How the service runs").click()
    assert fact(page, "rows judged") == f"{before:,}"
    mails = [{"user": "user 7", "size": 1.0}] * 4
    labels = [(str(answer.id), "yes") for answer in engine.predict(rows(mails)).result()]
    engine.label([*labels[:3], labels[0], ("nonsense", "no")]).result()
    learn(engine, 200, user="somebody new")
    expect(page.locator(".facts div", has_text="rows judged")).to_contain_text(f"{before + 203:,}")
    assert [fact(page, name) for name in ("wait for a label", "accepted", "twice", "unknown")] == ["1", "3", "1", "1"]
    assert "s" in fact(page, "median wait")
    page.locator("#sort").select_option("newest")
    expect(page.locator("#tasks a").first).to_have_text("somebody new")


def test_tasks_are_found_scrolled_and_shown(engine: Engine, url: str, page: Page) -> None:
    page.goto(url)
    page.locator("#sort").select_option("name")
    names = [str(one["task"]) for one in engine.list_tasks("name", "", 0, 999)[0]]
    note, links = page.locator("#tasks-note"), page.locator("#tasks a")
    expect(note).to_have_text(f"{len(names)} users")
    expect(links.first).to_have_text(NASTY)  # as text
    assert links.count() < 50  # those in sight
    page.locator("#scroller").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    expect(links.last).to_have_text(names[-1])
    learn(engine, 1, user="user 7")
    page.wait_for_timeout(500)
    expect(links.last).to_have_text(names[-1])  # events do not scroll
    page.get_by_label("Find").fill("USER 77")
    expect(links).to_have_count(1)
    mail = {"user": "user 77", "size": 2.5, "subject": "win a lunch"}
    chance = engine.predict(rows([mail])).result()[0].probability
    links.first.click()
    shown_task = page.get_by_role("dialog", name="user 77")
    expect(shown_task).to_contain_text("mean forecast")
    about = engine.task("user 77")
    assert about["latest"]["forecast"] == pytest.approx(chance)
    assert fact(page, "wrong") == f"{100 * about['error']:.0f}\u00a0%"
    expect(shown_task.locator("#task-facts")).to_contain_text(f"AUC{about['auc']:.4f}")
    expect(shown_task.locator("#why li", has_text='subject "win"').first).to_be_visible()
    way = about["ways"][0]["way"].replace("the task's", "the user's").replace("all tasks", "all users")
    expect(shown_task.locator("#ways li").first).to_contain_text(way)
    similar = about["similar"][0]["task"]
    assert [one["similarity"] > 0 for one in about["similar"]].count(True) == shown_task.locator("#similar li").count()
    shown_task.get_by_role("link", name=similar, exact=True).click()
    expect(page.locator("#task-name")).to_have_text(similar)
    page.keyboard.press("Escape")
    expect(page.locator("#task")).to_be_hidden()
    expect(page).to_have_url(f"{url}/")
    page.goto(f"{url}/#task={quote(NASTY, safe='')}")
    expect(page.locator("#task-name")).to_have_text(NASTY)
    expect(page.locator("#task-facts")).to_contain_text("rows50")
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#task")).to_be_hidden()
    page.get_by_label("Find").fill("nobody")
    expect(note).to_have_text("no user has this in its name")


def test_it_is_used_by_keyboard(engine: Engine, url: str, page: Page) -> None:
    page.goto(url)
    page.locator("#tasks a").nth(15).wait_for()
    worst, reached = page.locator("#worst tr:visible").count(), list[str]()
    while "scroller" not in reached and len(reached) < 80:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.localName"))
    assert reached == [*["a"] * worst, "filter", "sort", "scroller"]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for _ in range(30):  # beyond those that were drawn first
        page.keyboard.press("Tab")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # scrolled
    name = page.evaluate("document.activeElement.textContent")
    assert name == engine.list_tasks("rows", "", 29, 1)[0][0]["task"]
    learn(engine, 1, user="user 119")
    page.wait_for_timeout(500)
    assert page.evaluate("document.activeElement.textContent") == name
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name=name)).to_be_visible()
    page.keyboard.press("Enter")  # on the button that has the focus
    expect(page.locator("#task")).to_be_hidden()


def test_it_asks_for_a_token(engine: Engine, page: Page) -> None:
    with served(engine, [Token(b"secret" * 3, READ)]) as url:
        page.goto(url)
        page.get_by_label("This service asks for a token.").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("this token does not open the page")
        assert not page.locator("main").is_visible()
        page.locator("#token").fill("secret" * 3)
        page.get_by_role("button", name="Open").click()
        expect(page.locator("#status")).to_have_text("live")
        expect(page.locator("#tasks tr").first).to_be_visible()
        assert not page.locator("form").is_visible()


def test_a_row_or_two_say_nothing_of_errors_and_sharing(page: Page, tmp_path: Path) -> None:
    with Engine(write_model(tmp_path), tmp_path / "engine") as engine, served(engine, []) as url:
        learn(engine, 1)
        page.goto(url)
        expect(page.locator("#sentence")).to_contain_text("judged on 1 row so far, too few to say how often it")
        expect(page.locator("#sentence")).not_to_contain_text("Sharing")
        expect(page.locator("#tasks-note")).to_have_text("1 user")


def test_it_survives_a_restart(engine: Engine, page: Page) -> None:
    with served(engine, []) as first:
        page.goto(first)
        expect(page.locator("#status")).to_have_text("live")
    expect(page.locator("#status")).to_contain_text("does not answer")
    expect(page.locator("#sentence")).to_be_visible()  # what was known last
    learn(engine, 10, user="meanwhile")
    with served(engine, [], port=int(first.rpartition(":")[2])):
        expect(page.locator("#status")).to_have_text("live")
        expect(page.locator(".facts div", has_text="rows judged")).to_contain_text(f"{engine.statistics.rows:,}")


def test_it_does_not_wait_for_a_server_that_is_silent(url: str, page: Page) -> None:
    page.clock.install()
    page.route("**/v1/events", lambda route: None)  # neither answered nor refused
    page.goto(url)
    with page.expect_request("**/v1/events"):
        page.clock.fast_forward(6_000)
        expect(page.locator("#status")).to_contain_text("does not answer")
        page.clock.fast_forward(1_500)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_phone(scheme: Any, url: str, page: Page) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(url)
    page.locator("#tasks a").first.wait_for()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(background) < 64) == (scheme == "dark")
    for link in (None, page.locator("#tasks a").first):
        if link is not None:
            link.click()
            expect(page.locator("#task")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(NOTHING_CUT)
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 50
        assert contrasts[0][0] >= 4.5, contrasts[0]


def test_a_candidate_is_promoted_and_the_older_model_is_back(page: Page, tmp_path: Path) -> None:
    """Each takes one click and another to confirm it; a token that may not is shown no button."""
    (tmp_path / "other").mkdir()
    other = write_model(tmp_path / "other", MultitaskPerceptron(loss="logistic"))
    with Engine(write_model(tmp_path), tmp_path / "engine") as engine:
        engine.change("shadow", other.rename(engine.new_file()))
        learn(engine, 300)
        found, part, sure = engine.describe()["candidate"], page.locator("#candidate-part"), page.locator("#sure")
        with served(engine, [Token(b"reader" * 3, READ), Token(b"admin" * 4, ADMIN)]) as url:
            page.goto(url)
            for secret, is_shown in (("reader" * 3, False), ("admin" * 4, True)):
                page.evaluate("secret => sessionStorage.setItem('token', secret)", secret)
                page.reload()
                expect(part).to_contain_text(f"MultitaskPerceptron, {found['tasks']} users, learns the same rows")
                expect(part).to_contain_text("On the same 300 rows it is wrong in")
                cells = part.locator("td").all_inner_texts()
                assert cells[:2] == [f"{found[who]['error']:.4f}" for who in ("live", "scores")]
                expect(page.get_by_role("button", name="Promote")).to_be_visible(visible=is_shown)
            page.get_by_role("button", name="Promote").click()
            expect(sure).to_contain_text("The candidate answers from now on")
            page.keyboard.press("Enter")  # on "Cancel", which has the focus
            assert engine.describe()["candidate"] == found
            page.get_by_role("button", name="Promote").click()
            sure.get_by_role("button", name="Promote the candidate").click()
            expect(sure).to_be_hidden()
            expect(part).to_be_hidden()
            assert engine.describe()["learner"] == "MultitaskPerceptron"
            page.get_by_text("How the service runs").click()
            page.get_by_role("button", name="Roll back").click()
            sure.get_by_role("button", name="Return to the older model").click()
            expect(page.locator("#older-part")).to_be_hidden()
            assert engine.describe()["learner"] == "HedgedSharing"
