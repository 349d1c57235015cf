"""`summary` of counts and classes: standard errors against quadrature and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, gammaln, roots_hermitenorm

import condmeta as cm

NODES, WEIGHTS = roots_hermitenorm(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LEARNERS = {
    "count": cm.ConditionalCount,
    "class": cm.ConditionalLogistic,
    "ordered": cm.ConditionalOrdinal,
}


def draw(kind, T, n, seed, variance=0.5):
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=T), np.repeat(np.arange(T), n)
    f = (0.4 + 0.6 * s + np.sqrt(variance) * rng.normal(size=T))[task]
    if kind == "count":
        y = rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(f)))
    elif kind == "ordered":
        y = np.digitize(f + rng.logistic(size=T * n), [0.0, 1.3])
    else:
        y = (rng.random(T * n) < expit(f)).astype(int)
    return s, task, y


def fit(kind, s, task, y):
    learner = LEARNERS[kind](metric="identity", kappa=0.0, fit_intercept=False, scale="none")
    side = cm.TaskTable({"s": s}, ids=range(len(s)))
    return learner.fit(np.ones((len(y), 1)), y, task=task, side_info=side)


def log_density(kind, model, y, f, gap=0.0):
    """Return log p(y | f) of y (T, n, nodes) and f (T, 1, nodes), the last cut moved by `gap`."""
    if kind == "count":
        r, mu = 1 / model.alpha_, np.exp(f)
        constant = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
        return constant + r * np.log(r / (r + mu)) + y * np.log(mu / (r + mu))
    if kind == "class":
        return np.log(expit(np.where(y > 0, f, -f)))
    cuts = np.concatenate([[-np.inf], model.cuts_ + np.array([0.0, gap]), [np.inf]])
    above = [expit(f - cut) for cut in cuts]
    chances = [np.broadcast_to(above[k] - above[k + 1], y.shape) for k in range(3)]
    return np.log(np.choose(y, chances))


@pytest.mark.parametrize("kind", LEARNERS)
def test_standard_errors_are_those_of_the_exact_likelihood(kind):
    """Second differences of the likelihood by 60 nodes, by effects and cuts; H and alpha fixed."""
    T, n = 40, 12
    s, task, y = draw(kind, T, n, 0)
    model = fit(kind, s, task, y)
    std, labels = np.sqrt(model.H_[0, 0]), np.repeat(y.reshape(T, n, 1), len(NODES), axis=2)

    def value(w):
        f = (w[0] + w[1] * s)[:, None, None] + std * NODES
        each = log_density(kind, model, labels, f, w[2]).sum(axis=1)
        top = each.max(axis=1, keepdims=True)
        return float((top[:, 0] + np.log(np.exp(each - top) @ WEIGHTS)).sum())

    effects, h = model.summary(robust=False).effects, 1e-3
    w, step = np.append(effects["effect"], 0.0), h * np.eye(3)[: 3 if kind == "ordered" else 2]
    hessian = np.array([
        [
            (value(w + a + b) - value(w + a - b) - value(w - a + b) + value(w - a - b)) / (4 * h**2)
            for a in step
        ]
        for b in step
    ])  # fmt: skip
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))[:2]
    np.testing.assert_allclose(effects["std_error"], expected, rtol=0.02)


@pytest.mark.parametrize("kind", LEARNERS)
def test_robust_errors_agree_where_the_model_holds(kind):
    s, task, y = draw(kind, 300, 8, 1)
    model = fit(kind, s, task, y)
    plain, robust = (model.summary(robust=r).effects["std_error"] for r in (False, True))
    np.testing.assert_allclose(robust, plain, rtol=0.2)


@pytest.mark.parametrize("kind", LEARNERS)
def test_intervals_cover(kind):
    """Of 120 intervals of 95 %, two standard errors are 4 %."""
    inside = []
    for seed in range(60):
        effects = fit(kind, *draw(kind, 60, 6, 100 + seed)).summary(robust=False).effects
        inside += ((effects["lower"] < [0.4, 0.6]) & (effects["upper"] > [0.4, 0.6])).tolist()
    assert 0.91 <= np.mean(inside) <= 0.99


def test_words():
    text = str(fit("count", *draw("count", 30, 5, 2)).summary())
    assert text.startswith("ConditionalCount: 150 rows of 30 tasks, log likelihood")
    assert "log rates; counts have variance mu + " in text
    text = str(fit("ordered", *draw("ordered", 30, 6, 2)).summary())
    assert "log odds of a higher class, with cuts at 0, " in text
    assert "log odds of 1" in str(fit("class", *draw("class", 30, 6, 2)).summary())


def test_three_classes_have_the_summary_of_each_against_the_rest():
    s, task, y = draw("class", 30, 6, 2)
    X, three = np.arange(180.0)[:, None] % 7, np.digitize(np.arange(180) % 5 / 5 + y, [0.5, 1.0])
    side, settings = cm.TaskTable({"s": s}, ids=range(30)), {"metric": "identity", "kappa": 1.0}
    given = {"task": task, "side_info": side}
    found = cm.ConditionalLogistic(**settings).fit(X, three, **given).summary()
    assert found.effects["class"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    one = cm.ConditionalLogistic(**settings).fit(X, three == 2, **given).summary()
    np.testing.assert_allclose(found.effects["std_error"][8:], one.effects["std_error"], rtol=1e-6)
    assert "against the rest" in found._repr_html_()


def test_shared_coefficients_have_standard_errors(tmp_path):
    rng = np.random.default_rng(0)
    task, x = np.repeat(np.arange(80), 6), rng.normal(size=480)
    y = rng.poisson(np.exp(0.3 + 0.5 * x + 0.5 * rng.normal(size=80)[task]))
    model = cm.ConditionalCount(random="intercept").fit(x[:, None], y, task=task)
    effects = model.summary(robust=False).effects
    slope, error = effects["effect"][0], effects["std_error"][0]
    assert abs(slope - 0.5) < 3 * error < 0.3
    found = model.coef_frame(wide=True, std=True)
    robust = model.summary().effects["std_error"][0]
    np.testing.assert_allclose(found.filter(like="(std)").iloc[:, 0], robust, rtol=1e-6)
    model.save(tmp_path / "model", resume=False)
    with pytest.raises(cm.errors.DataError, match="resume=True"):
        cm.load(tmp_path / "model").summary()


def test_tables_name_their_classes():
    s, task, y = draw("class", 30, 6, 2)
    table = pd.DataFrame({"task": task, "x": np.arange(180.0) % 7, "s": s[task]})
    learner = cm.ConditionalLogistic(metric="identity", kappa=1.0)
    model = cm.TableModel(learner, task="task", side=["s"], target="y")
    two = model.fit(table.assign(y=np.where(y, "b", "a"))).summary()
    assert str(two).splitlines()[0].endswith("log odds of b")
    three = np.array(["u", "v", "w"])[np.digitize(np.arange(180) % 5 / 5 + y, [0.5, 1.0])]
    with pytest.warns(cm.errors.ReadingNote, match="3 classes"):
        found = model.fit(table.assign(y=three)).summary()
    assert found.effects["class"].unique().tolist() == ["u", "v", "w"]


def test_robust_errors_count_the_cuts_as_well():
    """A large slope and the cuts of five classes are estimated together."""
    rng = np.random.default_rng(0)
    x, task = rng.normal(size=(1600, 1)), np.repeat(np.arange(400), 4)
    f = 2.5 * x[:, 0] + 0.7 * rng.normal(size=400)[task] + rng.logistic(size=1600)
    model = cm.ConditionalOrdinal(metric="full", kappa=0.0, random="intercept")
    model.fit(x, np.digitize(f, [-3, -1, 1, 3]), task=task)
    plain, robust = (model.summary(robust=r).effects["std_error"] for r in (False, True))
    np.testing.assert_allclose(robust, plain, rtol=0.1)
