"""What Sphinx has not: claims with our verdicts, ranks of learners, exercises and steps that are run, formulas."""

from __future__ import annotations

import ast
import doctest
import html
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_gallery import notebook

import shoal
from added_algorithm import StepError, add_to_a_copy
from shoal.papers.claims.table import claims

HERE = Path(__file__).resolve().parent
FIELD = (
    "interaction_matrices",
    "p_norm_and_second_order",
    "schatten_norms",
    "smoothed_learning",
    "low_rank_and_personal",
    "passive_aggressive",
    "kernels",
    "gaussians_and_queries",
    "mixed_effects",
    "mixtures",
    "guards_and_intervals",
)


def order(name: str) -> tuple[int, str]:
    """Of pages in a gallery: those on the field from simple to composed, others by their names."""
    stem = Path(name).stem
    return (FIELD.index(stem) if stem in FIELD else len(FIELD)), stem


@cache
def reproduction() -> str:
    """The page that `shoal reproduce` wrote, with the verdict of every claim."""
    return (HERE / "reproduction.html").read_text("utf-8")


def verdict(claim: str) -> tuple[str, str]:
    """What our stored runs say of a claim, and the numbers that decide it; empty if it is newer than they are."""
    row = re.search(rf'<tr id="claim-{claim}">(.*?)</tr>', reproduction(), re.S)
    if row is None:
        return "", ""
    said, numbers = (
        " ".join(html.unescape(re.sub("<.*?>", " ", cell)).split())
        for cell in re.findall(r"<td.*?>(.*?)</td>", row[1], re.S)[1:3]
    )
    return re.sub(r" (rule changed; .*)$", r" (\1)", said), numbers


class Claims(SphinxDirective):
    """`.. claims:: osmtl-1 osmtl-3`: what the paper claims, and what we found."""

    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        """A table of a row a claim."""
        known = {claim.id: claim for claim in claims()}
        rows = []
        for name in self.arguments[0].split():
            claim, (said, numbers) = known[name], verdict(name)
            is_told = claim.quote.startswith("[") and claim.quote.endswith("]")  # the paper has no sentence of it
            quote = claim.quote[1:-1] if is_told else f"“{claim.quote}”"
            ours: list[nodes.Node] = [nodes.Text("… newer than the stored runs")]
            if said:
                page = "../" * self.env.docname.count("/") + "reproduction.html"
                ours = [nodes.reference("", said, refuri=f"{page}#claim-{name}"), nodes.Text(f"; {numbers}")]
            rows.append([[nodes.Text(f"{quote} ({claim.place})")], ours])
        table = nodes.table(classes=["claims"])
        group = nodes.tgroup(cols=2)
        group += [nodes.colspec(colwidth=55), nodes.colspec(colwidth=45)]
        group += nodes.thead("", _row([[nodes.Text("The paper")], [nodes.Text("Our runs")]]))
        group += nodes.tbody("", *map(_row, rows))
        table += group
        return [table]


class Ranks(SphinxDirective):
    """`.. ranks:: leaderboard-online`: places of learners on the data sets of a stored table, by its first score."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A table of a row a learner, the better first."""
        places = ranks(self.arguments[0])
        names = [name for name in places if name != "learner"]
        table = nodes.table(classes=["ranks"])
        group = nodes.tgroup(cols=1 + len(places["learner"]))
        group += [nodes.colspec(colwidth=1) for _ in range(1 + len(places["learner"]))]
        group += nodes.thead("", _row([[nodes.Text(said)] for said in ("learner", *places["learner"])]))
        rows = sorted(names, key=lambda name: sum(map(int, places[name])))
        group += nodes.tbody("", *(_row([[nodes.Text(said)] for said in (name, *places[name])]) for name in rows))
        table += group
        return [table]


def ranks(section: str) -> dict[str, list[str]]:
    """Places from 1 on by learner, and the data sets at "learner", in a section of the page of the reproduction."""
    [text] = re.findall(rf'<section id="{section}">(.*?)</section>', reproduction(), re.S)
    places: dict[str, list[str]] = {"learner": []}
    for table in re.findall(r"<table.*?</table>", text, re.S):
        streams = re.findall(r'<th colspan="(\d+)">(.*?)</th>', table)
        rows = {
            html.unescape(name): [float(said.split()[0]) for said in re.findall(r"<span>(.*?)</span>", cells)]
            for name, cells in re.findall(r"<tr><th>([^<]*)</th>(<td.*?)</tr>", table, re.S)
        }
        places["learner"] += [html.unescape(stream) for _, stream in streams]
        for i in range(len(streams)):
            scores = {name: values[i * int(streams[0][0])] for name, values in rows.items()}
            for name, score in scores.items():
                better = sum(other > score for other in scores.values())
                places.setdefault(name, []).append(str(1 + better))
    return places


def _row(cells: list[list[Any]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


class Costs(SphinxDirective):
    """A table of what a row costs each learner, by its docstring, and of the memory that the page says.

    A learner that the page lacks is a warning, and so an error of the build.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The table."""
        memory = dict(line.partition(":")[::2] for line in self.content if line.strip())
        learners = [name for name in shoal.__all__ if hasattr(getattr(shoal, name), "fit") and name != "Learner"]
        if wrong := sorted(set(learners) ^ set(memory)):
            logging.getLogger(__name__).warning("costs: the page lacks, or has and should not: %s", ", ".join(wrong))
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 32 46 22", ""]
        lines += ["   * - learner", "     - cost", "     - memory"]
        for name in sorted(set(memory) & set(learners), key=str.lower):
            lines += [f"   * - `{name}`", f"     - {cost_of(name)}", f"     - {memory[name].strip() or 'see its cost'}"]
        return self.parse_text_to_nodes("\n".join(lines))


def cost_of(name: str) -> str:
    """The sentences of a learner's docstring that begin with its cost or memory."""
    text = " ".join((inspect.getdoc(getattr(shoal, name)) or "").partition("\nParameters\n")[0].split())
    found = re.findall(r"(?<!\S)(?:Cost|Memory)\b.*?\.(?= [A-Z`]|$)", text)
    return " ".join(found).replace("_k", r"\_k") or "the learner's that it holds"


class Added(SphinxDirective):
    """`.. added::`: the steps of the page that adds an algorithm are done, and what their commands printed.

    One that fails is a warning, and so an error of the build.
    """

    def run(self) -> list[nodes.Node]:
        """A block of two lines a command."""
        self.env.note_reread()  # the library may have changed, and not the page
        try:
            printed = add_to_a_copy()
        except StepError as error:
            logging.getLogger(__name__).warning("add an algorithm: %s", error)
            return []
        text = "\n".join(f"$ {command}\n{said}" for command, said in printed)
        return [nodes.literal_block(text, text, language="none")]


def for_notebook(text: str) -> str:
    """Text of a page as a notebook shows it: with the code that it includes, and the claims, in place of directives."""

    def included(match: re.Match[str]) -> str:
        path, name = HERE.parent / match[1].removeprefix("/../"), match[2]
        code = source_of(path, name)
        return (
            f"``{path.relative_to(HERE.parent)}``\n\n.. code-block:: python\n\n" + textwrap.indent(code, "    ") + "\n"
        )

    def claimed(match: re.Match[str]) -> str:
        known = {claim.id: claim for claim in claims()}
        said = ((known[name], *verdict(name)) for name in match[1].split())
        return "".join(
            f"- {claim.quote} ({claim.place}): {found or 'newer than the stored runs'}; {numbers}\n"
            for claim, found, numbers in said
        )

    text = re.sub(r"^\.\. literalinclude:: (\S+)\n +:pyobject: (\S+)\n(?: +:\S+:.*\n?)*", included, text, flags=re.M)
    text = re.sub(r"^\.\. claims:: (.*(?:\n +\S.*)*)\n?", claimed, text, flags=re.M)

    def solved(match: re.Match[str]) -> str:
        return "**Solution**\n\n" + re.sub(
            r"^(?:>>>.*\n?(?:(?!>>>).+\n?)*)+",
            lambda code: ".. code-block:: python\n\n" + textwrap.indent(code[0], "    ") + "\n",
            textwrap.dedent(match[1]),
            flags=re.M,
        )

    text = re.sub(r"^\.\. admonition:: Solution\n(?: +:\S+:.*\n)*((?:(?: +.*)?\n)*(?: +.*)?)", solved, text, flags=re.M)
    text = re.sub(r"^\.\. (?:footbibliography|bibliography)::.*\n?(?: +:\S+:.*\n?)*", "", text, flags=re.M)
    return re.sub(r":footcite:[pt]:`(.*?)`", r"(\1)", text)


def source_of(path: Path, name: str) -> str:
    """The lines of a class or function `name`, or `Class.method`, with its decorators."""
    source = path.read_text("utf-8")
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        [node] = [one for one in getattr(node, "body", []) if getattr(one, "name", "") == part]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return textwrap.dedent("\n".join(source.splitlines()[first - 1 : node.end_lineno]))


def complete_notebooks() -> None:
    """Let sphinx-gallery, which has no hook for it, convert text of pages as `for_notebook` says."""
    convert = notebook.rst2md
    notebook.rst2md = lambda text, *rest: convert(for_notebook(text), *rest)


def run_examples(app: Sphinx, page: str, source: list[str]) -> None:
    """Solutions of exercises are examples with what they print; one that prints something else is a warning."""
    if not page.startswith("learn/"):
        return
    found: list[str] = []
    test = doctest.DocTestParser().get_doctest(source[0], {}, page, page, 0)
    doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=found.append)
    if found:
        logging.getLogger(__name__).warning("an exercise's solution prints something else:\n%s", "".join(found))


def write_formula(translator: Any, node: nodes.Element) -> None:
    """A formula as MathML, which browsers draw themselves."""
    is_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=is_block)
    translator.body.append(f'<div class="formula" tabindex="0">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    complete_notebooks()
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.add_directive("added", Added)
    app.add_directive("claims", Claims)
    app.add_directive("costs", Costs)
    app.add_directive("ranks", Ranks)
    app.connect("source-read", run_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
