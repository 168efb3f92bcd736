"""`macro_transitions` against a slow loop over primitive ticks, on random episodes one after another."""

import dataclasses
import functools
import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import as_played, macro_transitions, packed
from mavic.types import Timestep

T, W, N, M = 16, 3, 2, 5
SEEN = 2  # numbers in an observation


CHANCES = st.sampled_from([0.05, 0.2, 0.5, 1.0])  # a tick
RARE = st.sampled_from([0.0, 0.05, 0.2])


@st.composite
def played(draw):
    """Rows `[T, W, N]` as a rollout makes them. Macros end by themselves, at a change of instruction,
    and with the episode. An environment plays episodes one after another and then idles."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    own_end = rng.random((T, W, N)) < draw(CHANCES)
    change, task_over, too_late = (rng.random((T, W)) < draw(RARE) for _ in range(3))
    in_use = rng.integers(T + 1, size=W)
    reward = rng.integers(-9, 10, (T, W, N)).astype(np.float32)
    chosen, kinds = rng.integers(M, size=(T, W, N)), rng.integers(4, size=(T, W, N))

    rows = {f.name: np.zeros((T, W), np.float32) for f in dataclasses.fields(Timestep)}
    stamp = np.arange(1, T * W * N * SEEN + 1, dtype=np.float32).reshape(T, W, N, SEEN)
    for name in ("fresh", "ended", "unfinished"):
        rows[name] = np.ones((T, W, N), bool)
    rows["bootstraps_from_self"] = rng.random((T, W, N)) < draw(
        CHANCES
    )  # only told apart where the task ends
    for name in ("switched", "terminal", "truncated", "alive"):
        rows[name] = np.zeros((T, W), bool)
    rows["context"] = rng.integers(3, size=(T, W, N)).astype(np.int32)
    for name in ("macro", "last_macro", "kind", "phrase"):
        rows[name] = np.zeros((T, W, N), np.int32)
    rows["time"] = np.zeros((T, W), np.int32)
    rows["available"], rows["forbidden"] = np.zeros((2, T, W, N, M), bool)
    rows["observation"], rows["next_observation"] = np.zeros_like(stamp), stamp
    rows["reward"] = reward

    for w in range(W):
        start = True
        for t in range(in_use[w]):
            if start:
                begun, time = np.ones(N, bool), 0
                macro, last_macro = np.full(N, -1), np.full(N, -1)
                memory, masks = -stamp[t, w], np.zeros((N, M), bool)
                kind = kinds[t, w]
            last_macro = np.where(begun, macro, last_macro)
            macro = np.where(begun, chosen[t, w], macro)
            masks = np.where(begun[:, None], np.eye(M, dtype=bool)[macro], masks)
            terminal = task_over[t, w]
            truncated = not terminal and (too_late[t, w] or t + 1 == in_use[w])
            over = terminal or truncated
            switched = change[t, w] and not over
            ended = own_end[t, w] | switched | over
            rows["alive"][t, w], rows["time"][t, w] = True, time
            rows["fresh"][t, w], rows["ended"][t, w] = begun, ended
            rows["unfinished"][t, w] = over & ~own_end[t, w]
            rows["terminal"][t, w], rows["truncated"][t, w] = terminal, truncated
            rows["switched"][t, w] = switched
            rows["macro"][t, w], rows["last_macro"][t, w] = macro, last_macro
            rows["kind"][t, w], rows["phrase"][t, w] = kind, 10 * kind
            rows["observation"][t, w], rows["available"][t, w] = memory, masks
            rows["forbidden"][t, w] = ~masks
            memory = np.where(ended[:, None], stamp[t, w], memory)
            kind = kinds[t, w] if switched else kind
            begun, time, start = ended, time + 1, over
    return Timestep(**rows)


def by_loop(rows, gamma, drop_unfinished):
    """For each lane and agent its macro rows, one after another, walking tick by tick."""
    found = {}
    for w in range(W):
        for i in range(N):
            made, new_episode = [], True
            reward = length = 0
            for t in range(T):
                if not rows.alive[t, w]:
                    break
                if rows.fresh[t, w, i]:
                    reward, length, began_at_start = 0.0, 0, new_episode
                new_episode = False
                reward += gamma**length * float(rows.reward[t, w, i])
                length += 1
                over = rows.terminal[t, w] or rows.truncated[t, w]
                unfinished = over and rows.unfinished[t, w, i]
                if rows.ended[t, w, i] and not (unfinished and drop_unfinished):
                    everyone = [rows.phrase[t, w, (i + j) % N] for j in range(N)]
                    made.append(
                        SimpleNamespace(
                            observation=rows.observation[t, w, i],
                            available=rows.available[t, w, i],
                            forbidden=rows.forbidden[t, w, i],
                            last_macro=rows.last_macro[t, w, i],
                            macro=rows.macro[t, w, i],
                            phrases=everyone,
                            kind=max(rows.kind[t, w]),
                            context=rows.context[t, w, i],
                            reward=reward,
                            discount=0.0
                            if rows.terminal[t, w] and not rows.bootstraps_from_self[t, w, i]
                            else gamma**length,
                            next_observation=rows.next_observation[t, w, i],
                            switched=rows.switched[t, w],
                            first=began_at_start,
                            last=False,
                            bootstraps_from_self=rows.bootstraps_from_self[t, w, i],
                            time=rows.time[t, w],
                        )
                    )
                if over:
                    if made:
                        made[-1].last = True
                    new_episode = True
            found[w, i] = made
    return found


@functools.partial(jax.jit, static_argnames="drop_unfinished")
def _transitions(rows, gamma, drop_unfinished=False):
    return macro_transitions(rows, gamma, as_played(rows, drop_unfinished=drop_unfinished))


@jax.jit
def _realised(got, value):
    return targets(
        reward=got.reward,
        discount=got.discount,
        v_same_instruction=value + 100,  # nobody may read it
        v_next_instruction=value,
        switched=got.switched,
        last=got.last,
        correction=CORRECTIONS["none"],
        n_steps=math.inf,
    )


FAST = settings(max_examples=100, deadline=None, derandomize=True, database=None)
GAMMAS = st.sampled_from([0.5, 0.95, 0.992, 1.0])


@FAST
@given(rows=played(), gamma=GAMMAS, drop_unfinished=st.booleans())
def test_every_macro_row_is_what_the_loop_finds(rows, gamma, drop_unfinished):
    got = _transitions(rows, gamma, drop_unfinished=drop_unfinished)
    got = jax.tree.map(np.asarray, got)
    wanted = by_loop(rows, gamma, drop_unfinished)
    assert np.asarray(got.valid).sum(0).max() == max(len(made) for made in wanted.values())
    for (w, i), made in wanted.items():
        assert got.valid[:, w, i].tolist() == [True] * len(made) + [False] * (T - len(made))
        assert not got.first[len(made) :, w, i].any()
        assert not got.last[len(made) :, w, i].any()
        for k, row in enumerate(made):
            for name, value in vars(row).items():
                np.testing.assert_allclose(
                    getattr(got, name)[k, w, i], value, rtol=1e-5, atol=1e-4, err_msg=name
                )


@FAST
@given(rows=played(), gamma=GAMMAS)
def test_no_tick_is_lost_and_none_counted_twice(rows, gamma):
    got = _transitions(rows, gamma)
    valid = np.asarray(got.valid)
    assert (valid.sum(axis=0) == (rows.ended & rows.alive[..., None]).sum(axis=0)).all()
    undiscounted = np.where(valid, np.asarray(_transitions(rows, 1.0).reward), 0.0)
    alive = rows.alive[..., None]
    np.testing.assert_allclose(
        undiscounted.sum(axis=0), np.where(alive, rows.reward, 0.0).sum(axis=0), atol=1e-4
    )
    episodes = (rows.alive & (rows.terminal | rows.truncated)).sum(axis=0)
    for flag in (got.first, got.last):
        np.testing.assert_array_equal(np.asarray(flag).sum(axis=0), episodes[:, None].repeat(N, 1))


@FAST
@given(rows=played(), gamma=GAMMAS)
def test_returns_over_macros_are_the_primitive_returns(rows, gamma):
    """Transitions and targets together: from every decision on, the discounted rewards of all ticks to
    the episode's end, and the bootstrap there unless it truly ended."""
    got = _transitions(rows, gamma)
    value = np.arange(T * W * N, dtype=np.float32).reshape(T, W, N) % 7
    realised = _realised(got, value)
    for w in range(W):
        for i in range(N):
            decisions = [t for t in range(T) if rows.alive[t, w] and rows.fresh[t, w, i]]
            at_end = np.asarray(value[:, w, i])[np.asarray(got.last)[:, w, i]].tolist()
            onward, primitive = 0.0, {}
            for t in reversed(range(T)):
                if not rows.alive[t, w]:
                    continue
                if rows.terminal[t, w] and not rows.bootstraps_from_self[t, w, i]:
                    onward = 0.0 * at_end.pop()
                elif rows.terminal[t, w] or rows.truncated[t, w]:
                    onward = at_end.pop()
                onward = float(rows.reward[t, w, i]) + gamma * onward
                primitive[t] = onward
            np.testing.assert_allclose(
                np.asarray(realised)[: len(decisions), w, i],
                [primitive[t] for t in decisions],
                rtol=1e-5,
                atol=1e-3,
            )


@pytest.mark.parametrize(
    "mistake",
    [
        lambda rows: dataclasses.replace(rows, terminal=np.zeros_like(rows.terminal)),
        lambda rows: dataclasses.replace(rows, fresh=np.ones_like(rows.fresh)),
        lambda rows: dataclasses.replace(rows, ended=rows.ended ^ rows.unfinished),
        lambda rows: dataclasses.replace(rows, time=rows.time + 1),
    ],
    ids=["ends unseen", "macros cut up", "unfinished macros dropped", "clock off by one"],
)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_the_loop_sees_wrong_rows(mistake):
    """The comparison can fail: each mistake shows in some example."""

    @settings(FAST, phases=[Phase.generate])
    @given(rows=played())
    def compare(rows):
        got, wanted = _transitions(mistake(rows), 0.95), by_loop(rows, 0.95, False)
        for (w, i), made in wanted.items():
            assert np.asarray(got.valid)[:, w, i].sum() == len(made)
            for name in ("reward", "discount", "first", "last"):
                column = np.asarray(getattr(got, name))[: len(made), w, i]
                np.testing.assert_allclose(column, [getattr(r, name) for r in made], atol=1e-4)

    with pytest.raises(AssertionError):
        compare()


def episodes_of(got, agent):
    """Every episode's rows, as played or packed: the numbers of its rows in order, whatever the lane."""
    found = []
    for lane in range(got.valid.shape[1]):
        for k in np.flatnonzero(got.valid[:, lane, agent]):
            if got.first[k, lane, agent]:
                found.append([])
            row = (got.reward, got.discount, got.macro, got.time, got.last, got.next_observation)
            found[-1].append(tuple(np.ravel(x[k, lane, agent]).tolist() for x in row))
    return sorted(found)


@jax.jit
def _packed(rows):
    ends = packed(rows, episodes=T * W)
    narrow = packed(rows, episodes=T * W, lanes=W - 1)
    return tuple(macro_transitions(rows, 1.0, each) for each in (ends, ends[:6], narrow))


@FAST
@given(rows=played())
def test_packed_episodes_are_the_episodes_played(rows):
    """Whole and in order, lanes filled from the top and evenly; only the places differ."""
    plain = jax.tree.map(np.asarray, _transitions(rows, 1.0))
    idle = [(0, T)]  # as in a rollout, which has room for episodes that all last to the horizon
    roomy = jax.tree.map(lambda x: np.pad(x, idle + [(0, 0)] * (x.ndim - 1)), rows)
    got, small, narrow = (jax.tree.map(np.asarray, x) for x in _packed(roomy))
    assert narrow.valid.shape[1] == W - 1
    counts = got.valid.sum(axis=0)
    assert np.asarray(got.valid).sum(0).max() == counts.max()
    assert (np.diff(got.valid.astype(int), axis=0) <= 0).all()
    for agent in range(N):
        episodes = episodes_of(got, agent)
        assert episodes == episodes_of(plain, agent) == episodes_of(narrow, agent)
        longest = max(map(len, episodes), default=0)
        assert counts[:, agent].max() <= counts[:, agent].min() + longest
        if np.asarray(got.valid).sum(0).max() <= 6:  # a smaller room holds the same
            assert episodes_of(small, agent) == episodes
