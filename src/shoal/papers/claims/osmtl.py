"""Claims of Murugesan, Liu, Carbonell, Yang (NIPS 2016)."""

from collections.abc import Iterator

from shoal.papers.claims import rules
from shoal.papers.claims.claim import Case, Claim, Number
from shoal.papers.claims.evidence import Evidence, paired

TABLE, BATCH, SEEN, CONTROLS, BOUND = (
    "osmtl/table1",
    "osmtl/figure1",
    "osmtl/figure1-relations",
    "osmtl/controls",
    "theory/osmtl",
)
DATA = ("landmine", "spam", "sentiment")
FORMS = ("OSMTL-t", "OSMTL-e")
BASELINES = ("PA-ONE", "PA-ITL", "OSGL", "FOML", "OMTRL")
SLOW, AS_FAST = 10.0, 2.0  # times FOML's CPU time


def most_accurate(e: Evidence) -> Iterator[Case]:
    """The better form against the best baseline, a case a data set."""
    for data in DATA:
        yield rules.beats(e, TABLE, data, "auc", FORMS, BASELINES)


def fewest_updates(e: Evidence) -> Iterator[Case]:
    """The form with fewer updates against each baseline."""
    for data in DATA:
        yield from rules.beats_each(e, TABLE, data, "nsv", FORMS, BASELINES)


def learning_pays(e: Evidence) -> Iterator[Case]:
    """Each form against attention that stays uniform, alpha and C tuned alike."""
    for data in DATA:
        for form in FORMS:
            yield rules.beats(e, CONTROLS, data, "auc", [form], ["uniform attention"], f"{data}, {form}")


def sharing_pays(e: Evidence) -> Iterator[Case]:
    """The better form against independent Passive-Aggressive."""
    for data in DATA:
        yield rules.beats(e, TABLE, data, "auc", FORMS, ["PA-ITL"])


def exceptional(e: Evidence) -> Iterator[Case]:
    """It leads on sentiment, and by more than elsewhere."""
    lead = {}
    for data in DATA:
        mine, theirs = (e.best(TABLE, names, data, "auc") for names in (FORMS, BASELINES))
        lead[data] = e.gain(TABLE, mine, theirs, data, "auc").mean
    yield rules.beats(e, TABLE, "sentiment", "auc", FORMS, BASELINES, "it leads on sentiment")
    elsewhere = max(lead["landmine"], lead["spam"])
    yield Case(
        "by more than elsewhere",
        lead["sentiment"] > max(0.0, elsewhere),
        Number("lead on sentiment", lead["sentiment"], "+.3f"),
        Number("lead elsewhere", elsewhere, "+.3f"),
    )


def cheap(e: Evidence) -> Iterator[Case]:
    """OSMTL takes about FOML's time, OMTRL many times as much."""
    for data in DATA:
        yield rules.ratio(e, TABLE, data, "ms", "OMTRL", "FOML", least=SLOW)
        yield rules.ratio(e, TABLE, data, "ms", "OSMTL-e", "FOML", most=AS_FAST)


def batch(e: Evidence) -> Iterator[Case]:
    """SMTL first, one model for all first with 20 rows a task, SHAMO last."""
    forms, data = ("SMTL-t", "SMTL-e"), "landmine"
    for other in ("ITL", "STL"):
        yield rules.beats(e, BATCH, data, "auc", forms, [other], f"SMTL over {other}")
    others = ("ITL", "SHAMO", *forms)
    yield rules.beats(e, BATCH, data, "auc_20", ["STL"], others, "STL is first with 20 rows a task")
    worst = min(("ITL", "STL", *forms), key=lambda name: e.mean(BATCH, name, data, "auc"))
    yield Case(
        "SHAMO is last",
        e.gain(BATCH, worst, "SHAMO", data, "auc").above,
        Number("SHAMO", e.mean(BATCH, "SHAMO", data, "auc"), ".4f"),
        Number(worst, e.mean(BATCH, worst, data, "auc"), ".4f"),
    )


def visible(e: Evidence) -> Iterator[Case]:
    """Attention within a terrain over attention across: more with the exponential rule."""
    e_form, t_form = (e.values(SEEN, f"SMTL-{form}", "landmine", "contrast") for form in "et")
    yield Case(
        "within a terrain over across",
        paired(e_form, t_form).above,
        Number("SMTL-e", float(e_form.mean())),
        Number("SMTL-t", float(t_form.mean())),
    )


def bounded(e: Evidence) -> Iterator[Case]:
    """Theorem 1, both forms."""
    for data in ("made", "spam"):
        for form in ("exponential", "threshold"):
            yield rules.unbroken(e, BOUND, f"attention {form}", data)


def tuned_baselines(e: Evidence) -> Iterator[Case]:
    """Tuned Passive-Aggressive comes nearer to the published number of updates than one with a small C."""
    for data in DATA:
        for name in ("PA-ONE", "PA-ITL"):
            paper = e.published(TABLE, name, data, "nsv")[0]
            tuned = e.mean(TABLE, name, data, "nsv") / paper
            small = [e.mean(CONTROLS, f"{name}, C = {C}", data, "nsv") / paper for C in ("0.001", "0.01")]
            nearest = min(small, key=lambda share: abs(share - 1))
            yield Case(
                f"{data}, {name}",
                abs(tuned - 1) < abs(nearest - 1),
                Number("updates over published: tuned", tuned, ".2f"),
                Number("C of 0.001 or 0.01", nearest, ".2f"),
            )


CLAIMS = (
    Claim(
        "osmtl-1", "higher AUC than every baseline", "section 3.3, below Table 1",
        "it is evident that OSMTL* outperforms all the baselines in terms of both AUC and nSV",
        "On each data set the better form of OSMTL has a higher AUC than the best baseline.", most_accurate, TABLE,
    ),
    Claim(
        "osmtl-2", "fewest updates", "section 3.3, below Table 1",
        "it is evident that OSMTL* outperforms all the baselines in terms of both AUC and nSV",
        "On each data set OSMTL updates on fewer rows than each baseline.", fewest_updates, TABLE,
    ),
    Claim(
        "osmtl-3", "learned attention beats fixed attention", "section 3.3, below Table 1",
        "making the weights adaptive leads to improved performance",
        "OSMTL has a higher AUC than itself with attention that stays uniform, alpha and C tuned alike.",
        learning_pays, CONTROLS,
        remark="The paper compares with FOML, which has the same attention and alpha = 1/(K + 1), not tuned.",
    ),
    Claim(
        "osmtl-4", "sharing beats independent learning", "section 2.2",
        "when each task has limited training data, it is often beneficial to allow information sharing among the tasks",
        "On each data set OSMTL has a higher AUC than independent Passive-Aggressive learners.", sharing_pays, TABLE,
    ),
    Claim(
        "osmtl-5", "exceptional on sentiment", "section 3.3, last paragraph",
        "our proposed algorithm OSMTL* does exceptionally better in sentiment",
        "OSMTL beats the best baseline on sentiment, and by more than on the other data.", exceptional, TABLE,
        remark="Ours are 16 of the paper's 24 domains.",
    ),
    Claim(
        "osmtl-6", "as cheap as fixed weights, OMTRL is expensive", "section 3.3",
        "our algorithm consumes less or comparable CPU time than the baselines which take into account inter-task "
        "relationships",
        f"OMTRL takes at least {SLOW:g} times as long as FOML, OSMTL at most {AS_FAST:g} times.", cheap, TABLE,
        remark="That OMTRL is slow was a matter of its code: with a Gram matrix that is kept it costs O(K^2) a round.",
    ),
    Claim(
        "osmtl-7", "the batch form is first, SHAMO last", "section 3.2, Figure 1 (left)",
        "SMTL* outperforms the other baselines but when we have very few training examples ... SHAMO performs worse",
        "On landmine SMTL beats ITL and STL, STL is first with 20 rows a task, SHAMO is last.", batch, BATCH,
    ),
    Claim(
        "osmtl-8", "the exponential rule shows more structure", "Figure 1 (middle, right), caption",
        "The probabilistic formulation of SMTL-e allows it to discover more interesting patterns than SMTL-t",
        "The two terrains of landmine stand out more in the attention of SMTL-e than of SMTL-t.",
        visible, SEEN,
        revised="before, the online forms were a case, too, and any difference counted; now two standard errors are "
        "asked.",
    ),
    Claim(
        "osmtl-9", "regret bound", "Theorem 1", "[sublinear regret against the best linear predictor in hindsight]",
        "The cumulative loss never exceeds the bound.", bounded, BOUND,
    ),
    Claim(
        "osmtl-10", "baselines tuned like the method", "Table 1, PA-ONE and PA-ITL",
        "[PA-ITL updates on 1499.9 of 1500 mails, PA-ONE on 2902.9 of 3040 landmine rows]",
        "The published baselines are Passive-Aggressive learners with a tuned C, not with a C of 0.001 to 0.01.",
        tuned_baselines, CONTROLS,
        remark="With so small a C every step is C, and the learner classifies by class means. C was looked for after "
        "seeing the published counts: consistent evidence, not proof.",
    ),
)  # fmt: skip
