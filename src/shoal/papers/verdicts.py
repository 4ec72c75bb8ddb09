"""The claims as a page shows them: one table of all, and the lines that open a paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from shoal.papers.boxes import Box
from shoal.papers.claims.claim import FAILS, HOLDS, VERDICTS
from shoal.papers.claims.table import SIGNS, Line, conditions, summary, two_numbers

KINDS = {HOLDS: "good", FAILS: "bad"}
RULE = (
    "Each claim has a rule that yields cases: data sets, pairs of learners, settings. It holds if all its cases do, "
    "under conditions if half of them or more do, and otherwise it does not. Better means by more than two standard "
    "errors of the difference over shuffles; shuffles are orders and splits of the same rows, so this speaks of these "
    "data, not of others. \"By its own numbers\" is the same rule on what the paper prints."
)  # fmt: skip


def claim_table(lines: Sequence[Line], titles: dict[str, str]) -> str:
    """All claims, paper by paper."""
    body = []
    for paper in dict.fromkeys(line.claim.paper for line in lines):
        body.append(f'<tr class="paper"><th colspan="4"><a href="#{paper}">{escape(titles[paper])}</a></th></tr>')
        body += [_row(line) for line in lines if line.claim.paper == paper]
    head = "<tr><th>claim</th><th>verdict</th><th>two numbers</th><th>by its own numbers</th></tr>"
    return (
        f'<section id="claims"><h2>The claims</h2><p>{escape(summary(lines))} {escape(RULE)}</p>'
        f'<div class="scroll"><table class="claims"><thead>{head}</thead><tbody>{"".join(body)}</tbody></table></div>'
        "</section>"
    )


def _row(line: Line) -> str:
    claim, judgement = line.claim, line.ours
    facts = [
        f"<p><b>{escape(claim.place)}:</b> “{escape(claim.quote)}”</p>",
        f"<p>Read as: {escape(claim.reading)}</p>",
    ]
    revised = f"The rule was changed after runs had been seen: {claim.revised}" if claim.revised else ""
    facts += [f"<p>{escape(text)}</p>" for text in (conditions(judgement), claim.remark, revised) if text]
    facts += [
        "<ul>" + "".join(f"<li>{SIGNS[HOLDS if c.holds else FAILS]} {escape(f'{c.where}: {c.first}, {c.second}')}</li>"
                         for c in judgement.cases) + "</ul>"
    ]  # fmt: skip
    return (
        f'<tr id="claim-{claim.id}">'
        f"<td><details><summary>{escape(claim.title)}</summary>{''.join(facts)}</details></td>"
        f"<td>{badge(judgement.verdict)}</td>"
        f'<td><a href="#{claim.link.replace("/", "-")}">{escape(two_numbers(judgement))}</a></td>'
        f'<td class="plain">{escape(line.theirs or "not printed")}</td></tr>'
    )


def badge(verdict: str) -> str:
    """A sign, a word, and then a color."""
    return f'<span class="badge {KINDS.get(verdict, "plain")}">{SIGNS[verdict]} {escape(verdict)}</span>'


def opening(lines: Iterable[Line], box: Box | None) -> str:
    """A line a verdict, the protocol box, the differences."""
    known = list(lines)
    said = "".join(
        f"<li>{badge(verdict)} {_links(known, verdict)}</li>"
        for verdict in VERDICTS
        if any(line.ours.verdict == verdict for line in known)
    )
    verdicts = f'<ul class="verdicts">{said}</ul>' if said else ""
    return verdicts + ("" if box is None else _box(box))


def _links(lines: Iterable[Line], verdict: str) -> str:
    found = [line for line in lines if line.ours.verdict == verdict]
    told = [
        f'<a href="#claim-{line.claim.id}">{escape(line.claim.title)}</a>'
        + (f" ({escape(two_numbers(line.ours))})" if verdict in (HOLDS, FAILS) else "")
        for line in found
    ]
    return "; ".join(told)


def _box(box: Box) -> str:
    lines = "".join(
        f"<tr><th>{escape(what)}</th><td>{escape(theirs)}</td><td>{escape(ours)}</td></tr>"
        for what, theirs, ours in box.protocol
    )
    differences = "".join(f"<li>{escape(sentence)}</li>" for sentence in box.differences)
    return (
        '<div class="scroll"><table class="box">'
        "<thead><tr><th>protocol</th><th>the paper's</th><th>ours</th></tr></thead>"
        f"<tbody>{lines}</tbody></table></div><ul>{differences}</ul>"
    )
