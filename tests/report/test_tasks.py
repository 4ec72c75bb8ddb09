"""The table of tasks: what it holds, how large it gets, and how it looks and works in a browser, on a phone too."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.report.conftest import Evaluations

from shoal import Conformal, MultitaskRegressor
from shoal.evaluation import Evaluation, compare, progressive_validate
from shoal.evaluation.metrics.trends import TaskTrends
from shoal.report import figures, write_report
from shoal.report.tasks import MOST, task_section

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Elements whose boxes must not lie over each other: the cells of a table that are shown.
OVERLAPS = """() => [...document.querySelectorAll("table")].flatMap((table) => {
  const boxes = [...table.querySelectorAll("th, td")].map((cell) => cell.getBoundingClientRect())
    .filter((box) => box.width && box.height);
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  return boxes.filter((a, i) => boxes.some((b, j) => j > i && over(a, b)));
}).length"""
CUT = """[...document.querySelectorAll("section, table, .scroll, td")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).length"""


# Of all pairs of texts in a picture those that lie over each other; a name is drawn twice, its rim first.
LABELS = """() => [...document.querySelectorAll(".chart > svg")].flatMap((picture) => {
  const texts = [...picture.querySelectorAll("text")].filter((one) => one.textContent.trim())
    .map((one) => ({said: one.textContent, box: one.getBoundingClientRect()}));
  const over = ({said: one, box: a}, {said: other, box: b}) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2
    && !(one === other && Math.abs(a.left - b.left) < 3 && Math.abs(a.top - b.top) < 3);
  return texts.flatMap((a, i) => texts.slice(i + 1).filter((b) => over(a, b)).map((b) => a.said + " / " + b.said));
})"""


def table_in(text: str) -> dict[str, Any]:
    found = re.search(r'id="task-data">(.*?)</script>', text, re.S)
    assert found is not None
    return dict(json.loads(found[1]))


class TestTrends:
    def test_means_and_errors_of_parts_by_hand(self) -> None:
        trends = TaskTrends("binary", has_probabilities=True)
        code = np.arange(128) % 2  # 64 rows are a part
        truth = np.where(np.arange(128) < 64, 1.0, -1.0)
        trends.update(code[:50], truth[:50], np.full(50, np.log(3.0)), 2)
        trends.update(code[50:], truth[50:], np.full(78, np.log(3.0)), 2)
        assert trends.means(2) == pytest.approx(np.array([[3 / 4, 1 / 2]] * 2))
        assert trends.trend(3)[:, :2] == pytest.approx(np.array([[0.0, 1.0], [0.0, 1.0], [np.nan] * 2]), nan_ok=True)

    def test_sixteen_parts_become_eight(self) -> None:
        trends = TaskTrends("regression", has_probabilities=False)
        error = np.repeat(np.arange(16.0), 64)
        trends.update(np.zeros(1024, int), error + 1.0, np.ones(1024), 1)
        assert trends.trend(1)[0, :8] == pytest.approx(np.arange(8) * 2 + 0.5)
        assert trends.means(1).tolist() == [[1.0, 8.5]]


def test_numbers_of_each_task(binary: Evaluations) -> None:
    """The report had no table of tasks."""
    first, own = binary["MultitaskPerceptron"], binary["independent"]
    table = table_in(task_section(binary))
    assert table["titles"] == ["task", "rows", "AUC", "gain", "forecast", "truth"]
    assert table["rows"][0][0] == "T000"  # the one with most rows
    for row, line in zip(table["rows"], table["trend"], strict=True):
        scores = first.per_task[row[0]]
        assert row[1] == scores["rows"]
        assert (row[2] is None) == np.isnan(scores["auc"])
        if row[2] is not None:
            assert row[2:4] == pytest.approx([scores["auc"], scores["auc"] - own.per_task[row[0]]["auc"]], rel=1e-3)
        assert re.fullmatch(r"[0-9 ]+", line)


def test_names_of_tasks_are_no_markup(binary: Evaluations) -> None:
    first = binary["MultitaskPerceptron"]
    named = {f"</script><b>{task}": scores for task, scores in first.per_task.items()}
    text = task_section({"a": Evaluation("binary", first.rows, first.overall, first.macro, named)})
    assert text.count("</script>") == 1
    assert table_in(text)["rows"][0][0] == "</script><b>T000"


def many(n: int) -> Evaluations:
    """A learner and models per task, without a run."""
    rng = np.random.default_rng(0)
    rows, trends = rng.integers(1, 100, n), TaskTrends("binary", has_probabilities=True)
    for _ in range(3):
        trends.update(np.arange(n), rng.choice([-1.0, 1.0], n), rng.normal(size=n), n)
    found = {}
    for name in ("MultitaskPerceptron", "independent"):
        errors = rng.random(n).tolist()
        per_task = {
            f"store-{k:06d}": {"rows": int(count), "updates": 1, "error": error}
            for k, (count, error) in enumerate(zip(rows.tolist(), errors, strict=True))
        }
        error = {"error": float(np.mean(errors))}
        found[name] = Evaluation("binary", int(rows.sum()), error, error, per_task, n_updates=n, trends=trends)
    return found


def test_a_hundred_thousand_tasks_make_no_page_of_29_megabytes(tmp_path: Path) -> None:
    """Finding 39."""
    evaluations = many(100_000)
    write_report(tmp_path / "r.html", evaluations)
    assert (tmp_path / "r.html").stat().st_size < 3_000_000
    text = (tmp_path / "r.html").read_text()
    table = table_in(text)
    assert MOST / 2 < len(table["rows"]) <= MOST
    shown = {row[0] for row in table["rows"]}
    first, own = (one.per_task for one in evaluations.values())
    assert max(first, key=lambda task: first[task]["error"]) in shown
    assert max(first, key=lambda task: first[task]["error"] - own[task]["error"]) in shown
    sizes = re.findall(r"<tr><th>(1 to 9|10 to 99) rows</th><td>([\d,]+)</td>", text)
    assert sum(int(count.replace(",", "")) for _, count in sizes) == 100_000
    assert "1,000 of 100,000 tasks are drawn, at random" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory, binary: Evaluations) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("report") / "r.html"
    learner, own, one = binary.values()
    verdict = compare(learner, independent=own, pooled=one)
    write_report(path, binary, verdict=verdict, title="A title with a-word-that-is-longer-than-a-phone-is-wide.csv")
    page = browser.new_page()
    page.set_default_timeout(120_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector(".chart svg")
    yield page
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_is_cut_or_over_another_and_nothing_scrolls_sideways(opened: Page, width: int, scheme: Any) -> None:
    opened.emulate_media(color_scheme=scheme)
    opened.set_viewport_size({"width": width, "height": 900})
    opened.wait_for_function("document.querySelector('.chart svg') !== null")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(CUT) == 0
    assert opened.evaluate(OVERLAPS) == 0
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 25, 31)" if scheme == "dark" else "rgb(247, 248, 250)"
    )


def test_no_label_of_a_picture_lies_over_another(
    browser: Browser, tmp_path: Path, binary: Evaluations, regression: Evaluations, hedged: Evaluations
) -> None:
    """Of every picture that there is."""
    labels = [f"label {i}" for i in range(14)]
    told = {(a, b): 1 + 99 * (a == b) for a in labels for b in labels}
    several = {"several": replace(binary["pooled"], kind="multiclass", confusion=told)}
    X, task = np.random.default_rng(0).normal(size=(400, 2)), np.arange(400) % 4
    within = {"within": progressive_validate(Conformal(MultitaskRegressor()), (X, X[:, 0], task), checkpoints=200)}
    seen = set()
    for evaluations in (binary, regression, hedged, several, within):
        write_report(tmp_path / "r.html", evaluations)
        seen |= {figure.name for figure in figures(evaluations)}
        for width in (1200, 400):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.set_default_timeout(120_000)
            page.goto((tmp_path / "r.html").as_uri())
            page.wait_for_function("[...document.querySelectorAll('.chart')].every((one) => one.querySelector('svg'))")
            assert page.evaluate(LABELS) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()
    assert {
        "progress",
        "gain",
        "importance",
        "calibration",
        "coverage",
        "forecasts",
        "confusion",
        "sharing",
        "relation",
        "updates",
    } == seen


def test_it_is_sorted_and_searched(opened: Page, binary: Evaluations) -> None:
    opened.set_viewport_size({"width": 1200, "height": 900})
    rows = opened.locator("#tasks tbody tr")
    assert rows.count() == 15
    assert "1 to 15 of 30" in opened.locator("#task-pages").inner_text()
    opened.get_by_role("button", name="gain").click()
    gains = [float(text) for text in opened.locator("#tasks tbody td:nth-child(4)").all_inner_texts() if text != "–"]
    assert gains == sorted(gains, reverse=True)
    opened.get_by_role("button", name="gain").click()
    assert opened.locator("#tasks th").nth(3).get_attribute("aria-sort") == "ascending"
    opened.get_by_role("searchbox").fill("t00")
    assert rows.count() == 10
    opened.get_by_role("searchbox").fill("nothing")
    assert rows.count() == 0
    assert "none found" in opened.locator("#task-pages").inner_text()
    opened.get_by_role("searchbox").fill("")
    assert opened.locator("#tasks svg polyline").count() > 10
