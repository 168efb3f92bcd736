"""The correction for anybody's arrays: equal to the learner's targets, and to rows worked by hand."""

import math
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.correction import CORRECTIONS, gae, targets
from mavic.learn import returns

ROOT = Path(__file__).parents[1]
NAMES = ("reward", "discount", "v_same", "v_next", "switched", "last")


def random_rows(seed: int, shape=(12, 2)) -> dict[str, np.ndarray]:
    """Rows of short episodes, with changes of instruction and true ends at random."""
    rng = np.random.default_rng(seed)
    return {
        "reward": rng.normal(size=shape),
        "discount": 0.95 ** rng.integers(1, 9, shape) * (rng.random(shape) > 0.1),
        "v_same": rng.normal(size=shape),
        "v_next": rng.normal(size=shape),
        "switched": rng.random(shape) < 0.3,
        "last": rng.random(shape) < 0.15,
    }


def learners(rows: dict[str, np.ndarray], correction: str, **numbers: float) -> np.ndarray:
    """The targets of the learner for the same rows."""
    long = {"v_same": "v_same_instruction", "v_next": "v_next_instruction"}
    arrays = {long.get(name, name): jnp.asarray(row) for name, row in rows.items()}
    found = returns.targets(**arrays, correction=returns.CORRECTIONS[correction], **numbers)
    return np.asarray(found)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("n_steps", [1, 2, 5, 12, math.inf])
def test_random_rows_have_the_learners_targets(correction, n_steps):
    for seed in range(4):
        rows, td_lambda = random_rows(seed), (1.0, 0.9, 0.3, 0.0)[seed]
        got = targets(**rows, correction=correction, n_steps=n_steps, td_lambda=td_lambda)
        wanted = learners(rows, correction, n_steps=n_steps, td_lambda=td_lambda)
        assert isinstance(got, np.ndarray) and got.dtype == np.float64
        np.testing.assert_allclose(got, wanted, rtol=3e-5, atol=3e-5)


def test_rows_worked_by_hand():
    """Three rows under c, c' and c'; the last one is a true end."""
    rows = {
        "reward": np.array([1.0, 2.0, 3.0]),
        "discount": np.array([0.5, 0.5, 0.0]),
        "v_same": np.array([10.0, 4.0, 9.0]),
        "v_next": np.array([6.0, 4.0, 9.0]),
        "switched": np.array([True, False, False]),
        "last": np.array([False, False, True]),
    }
    whole = [3.5, 3.0]  # 2 + 0.5 * 3, and 3
    assert targets(**rows, correction="none").tolist() == [1 + 0.5 * 3.5, *whole]
    assert targets(**rows, correction="cut").tolist() == [1 + 0.5 * 10, *whole]
    assert targets(**rows, correction="shift").tolist() == [1 + 0.5 * (10 + 3.5 - 6), *whole]
    assert targets(**rows, correction="none", n_steps=1).tolist() == [1 + 0.5 * 6, 4.0, 3.0]
    advantage, target = gae(
        value=np.array([7.0, 5.0, 8.0]), **rows, correction="none", gae_lambda=0.5
    )
    # the usual recursion: delta + discount * lambda * advantage of the next row; V(h', c') of a row is V(h, c) there
    deltas = [1 + 0.5 * 6 - 7, 2 + 0.5 * 4 - 5, 3 - 8]
    assert advantage[2] == deltas[2]
    assert advantage[1] == deltas[1] + 0.5 * 0.5 * (3 - 4)
    assert target.tolist() == (advantage + np.array([7.0, 5.0, 8.0])).tolist()


def test_without_a_change_gae_is_the_usual_one():
    rows = random_rows(5) | {"switched": np.zeros((12, 2), bool)}
    value = np.random.default_rng(6).normal(size=(12, 2))
    rows["v_next"] = np.where(rows["last"], rows["v_next"], np.roll(value, -1, axis=0))
    for correction in CORRECTIONS:
        advantage, _ = gae(value=value, **rows, correction=correction, gae_lambda=0.9)
        usual, later = np.zeros_like(value), np.zeros(2)
        for k in range(11, -1, -1):
            delta = rows["reward"][k] + rows["discount"][k] * rows["v_next"][k] - value[k]
            later = delta + rows["discount"][k] * 0.9 * later * ~(rows["last"][k] | (k == 11))
            usual[k] = later
        np.testing.assert_allclose(advantage, usual, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_jax_arrays_under_jit(correction):
    rows = random_rows(1)
    arrays = [jnp.asarray(rows[name]) for name in NAMES]
    for n_steps in (2, math.inf):
        program = jax.jit(lambda *a, n=n_steps: targets(*a, correction=correction, n_steps=n))
        got = program(*arrays)
        assert isinstance(got, jax.Array)
        np.testing.assert_allclose(got, learners(rows, correction, n_steps=n_steps), rtol=3e-5)


@pytest.mark.long
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_torch_tensors(correction):
    import torch

    rows = random_rows(2)
    tensors = {name: torch.tensor(row) for name, row in rows.items()}
    tensors["switched"] = tensors["switched"].float()  # as many learners hold them
    for n_steps in (1, 3, math.inf):
        got = targets(**tensors, correction=correction, n_steps=n_steps)
        assert isinstance(got, torch.Tensor)
        own = targets(**rows, correction=correction, n_steps=n_steps)
        np.testing.assert_allclose(got.numpy(), own, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"correction": "cutt"}, "'cutt' is unknown; one of none, cut, shift"),
        ({"n_steps": 0}, "n_steps must be a whole number >= 1"),
        ({"td_lambda": 2.0}, "td_lambda must be from 0 to 1"),
        ({"last": np.zeros(12, bool)}, "last has shape (12,), but reward has (12, 2)"),
        ({"reward": [1.0]}, "reward must be an array of numpy, torch or JAX, not list"),
        ({"v_same": 1.0}, "v_same must be an array, not float"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_input_is_one_clear_line(wrong, said):
    with pytest.raises(ValueError) as error:
        targets(**(random_rows(0) | wrong))
    assert said in str(error.value) and "\n" not in str(error.value)


def test_it_needs_neither_jax_nor_numpy():
    code = (
        "import sys; [sys.modules.__setitem__(n, None) for n in ('jax', 'numpy', 'torch')]; "
        "import mavic.correction; print(sorted(m for m in sys.modules if m.startswith('mavic')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ran.stdout.strip() == "['mavic', 'mavic.correction']"


def test_the_page_shows_what_it_says():
    page = (ROOT / "docs" / "correction.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict = {}
    exec(compile(block, "docs/correction.md", "exec", dont_inherit=True), names)
    for name in CORRECTIONS:
        shown = re.search(rf"^\| `{name}` \| ([\d.]+) \|", page, re.MULTILINE)
        assert float(shown[1]) == names["found"][name][0]


def diff_of_the_page() -> str:
    page = (ROOT / "docs" / "correction.md").read_text(encoding="utf-8")
    (diff,) = re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return diff


def test_the_changed_lines_of_a_ppo_run():
    """Four environments: one goes on, one is told something, one truly ends, one is cut at its horizon."""
    acting, after = (
        "\n".join(line[1:] for line in part.splitlines() if not line.startswith("-"))
        for part in diff_of_the_page().split(" # after the rollout\n")
    )
    rng, (ended, cut) = np.random.default_rng(0), np.zeros((2, 3, 4), bool)
    seen, rewards = rng.normal(size=(2, 3, 4))
    said = np.zeros((4, 4, 1))
    said[2:, 1] = ended[1, 2] = cut[1, 3] = True
    steps = zip(seen, rewards, ended, cut, said[1:], strict=True)
    names = {name: np.zeros((3, 4)) for name in ("rewards", "discount", "v_same", "v_next")}
    names |= {name: np.zeros((3, 4), bool) for name in ("switched", "last")}
    names |= {
        "env": SimpleNamespace(step=lambda action: next(steps)),
        "critic": lambda seen, said, memory: (seen + 10 * said[:, 0], "memory of that pass"),
        "gae": partial(gae, gae_lambda=1.0),
        **dict(values=np.zeros((3, 4)), instruction=said[0], action=0, memory=0),
        **dict(gamma=0.5, ticks=2),
    }
    for names["t"] in range(3):
        exec(acting, names)
    exec(after, names)
    assert seen[2, 1] + 10 == names["v_next"][2, 1]
    onward = [names["returns"][2, 0], seen[1, 1], 0, seen[1, 3]]  # told: its value under no words
    np.testing.assert_allclose(names["returns"][1], rewards[1] + 0.25 * np.array(onward))


def test_the_changed_lines_of_a_ppo_are_at_most_ten():
    diff = diff_of_the_page()
    added = [line for line in diff.splitlines() if line.startswith("+")]
    assert 1 <= len(added) <= 10
