"""The page: one file that needs no network, with the run's numbers, safe whatever the names of tasks are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import Evaluations

from shoal.evaluation import compare
from shoal.report import figures, write_report
from shoal.report.page import drawing_library


class Page(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text += data


def written(path: Path, evaluations: Evaluations, **options: Any) -> Page:
    write_report(path, evaluations, **options)
    return Page(path.read_text(encoding="utf-8"))


def specs(page: Page) -> dict[str, Any]:
    found = re.search(r"const specs = (\{.*\});\n", page.scripts[-1])
    assert found is not None
    return dict(json.loads(found[1]))


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path, binary: Evaluations) -> None:
    page = written(tmp_path / "report.html", binary)
    assert len(page.scripts) == 3  # the table of tasks, the drawing library, the page's own
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "img", "object", "embed")
        assert not {"src", "href", "action", "data"} & set(attributes)
    style = (tmp_path / "report.html").read_text(encoding="utf-8").split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_the_drawing_library_is_made_once_for_all_reports(
    tmp_path: Path, binary: Evaluations, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(snippet: str) -> str:
        made.append(snippet)
        return "code</script>'ä'"

    monkeypatch.setattr("vl_convert.javascript_bundle", make)
    (tmp_path / "file").touch()
    for home, times in (("home", 1), ("home", 1), ("file", 2)):  # the last one's cache folder can not be made
        monkeypatch.setenv("HOME", str(tmp_path / home))
        drawing_library.cache_clear()
        page = written(tmp_path / "report.html", binary)
        assert "code<\\/script>'ä'" in page.scripts
        assert len(made) == times
    drawing_library.cache_clear()
    assert len(list((tmp_path / "home").rglob("*.js"))) == 1


def test_it_holds_the_scores_the_verdict_and_every_picture(tmp_path: Path, binary: Evaluations) -> None:
    verdict = compare(binary["MultitaskPerceptron"], independent=binary["independent"], pooled=binary["pooled"])
    page = written(tmp_path / "report.html", binary, verdict=verdict, title="A title", notes=["a note"])
    for evaluation in binary.values():
        assert f"{evaluation.overall['error']:.4f}" in page.text
        assert f"{evaluation.macro['auc']:.4f}" in page.text
    told = [verdict.sentence, *(cell for line in verdict.lines for cell in line)]
    for expected in (*told, "A title", "a note", "3,000 rows of 30 tasks"):
        assert expected in page.text
    drawn = figures(binary)
    assert set(specs(page)) == {figure.name for figure in drawn}
    places = {attributes.get("id") for tag, attributes in page.tags if tag == "div"}
    for figure in drawn:
        assert figure.title in page.text
        assert figure.name in places


def test_the_heading_is_the_sentence(tmp_path: Path, binary: Evaluations) -> None:
    verdict = compare(binary["MultitaskPerceptron"], independent=binary["independent"], pooled=binary["pooled"])
    kinds = {"share partly": "verdict share-partly", "do not share": "verdict do-not-share", "undecided": "verdict"}
    for outcome, kind in kinds.items():
        path = tmp_path / "report.html"
        write_report(path, binary, verdict=replace(verdict, outcome=outcome))
        begins = f'<section class="{kind}"><h2>{verdict.sentence}</h2><div class="scroll"><table>'
        assert begins in path.read_text(encoding="utf-8")


def test_updates_are_shown_where_not_every_row_is_one(
    tmp_path: Path, binary: Evaluations, regression: Evaluations
) -> None:
    learner = binary["MultitaskPerceptron"]
    page = written(tmp_path / "report.html", {"learner": learner})
    assert "updates a row" in page.text
    assert f"{learner.n_updates / learner.rows:.2f}" in page.text
    assert "updates a row" not in written(tmp_path / "report.html", regression).text


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_the_best_value_of_a_metric_is_bold(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    evaluations = request.getfixturevalue(kind)
    write_report(tmp_path / "report.html", evaluations)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    bold = re.findall(r"<td class=best>([^<]*)</td>", text)
    choose, metric = (max, "auc") if kind == "binary" else (min, "rmse")
    assert f"{choose(e.macro[metric] for e in evaluations.values()):.4f}" in bold
    assert f"{choose(e.overall[metric] for e in evaluations.values()):.4f}" in bold


def test_names_cannot_break_out_of_the_page(tmp_path: Path, binary: Evaluations) -> None:
    bad = "</script><script>alert(1)</script><!--"
    learner = binary["MultitaskPerceptron"]
    per_task = {bad if k == 0 else task: of for k, (task, of) in enumerate(learner.per_task.items())}
    page = written(tmp_path / "report.html", {bad: replace(learner, per_task=per_task)}, title=bad, notes=[bad])
    assert [tag for tag, _ in page.tags].count("script") == 3
    assert page.text.count(bad) >= 3
    assert bad in json.dumps(specs(page), ensure_ascii=False)


def test_undefined_scores_are_said_to_be(tmp_path: Path, binary: Evaluations) -> None:
    learner = binary["MultitaskPerceptron"]
    none = replace(learner, overall=learner.overall | {"f1_positive": float("nan")})
    assert "undefined" in written(tmp_path / "report.html", {"learner": none}).text


def test_refusals(tmp_path: Path, binary: Evaluations) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        write_report(tmp_path / "none" / "report.html", binary)
    with pytest.raises(ValueError, match="at least one"):
        write_report(tmp_path / "report.html", {})
