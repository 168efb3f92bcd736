"""Judges agents that are no teams of ours: a script, a numpy network, a language model, and you at the terminal.

    python examples/judge_agents.py box_pushing script network --episodes 32 --out runs
    python examples/judge_agents.py box_pushing model --url http://127.0.0.1:8000/v1 --episodes 4 --out runs
    python examples/judge_agents.py box_pushing person --condition live/by-kind/kinds=stay --episodes 1 --out runs
    mavic report runs/box_pushing

They meet the episodes, the instructions and the metrics of trained teams. Any callable can take their place.
"""

import argparse
import json
import sys
import urllib.request

import numpy as np

import mavic
from mavic.envs import api, painting
from mavic.envs.overcooked.optimum import BEST_PLAN
from mavic.envs.warehouse.optimum import BEST_PLANS

MOVES = {"S": "STAY", "R": "RIGHT", "D": "DOWN", "L": "LEFT", "U": "UP"}
# What a script does under a command, for each agent or for all. Under other instructions it goes on with its work.
OBEY = {
    "box_pushing": {
        "go-small-boxes": ("GO_SMALL_BOX_0", "GO_SMALL_BOX_1"),
        "go-small-box-0": "GO_SMALL_BOX_0",
        "go-small-box-1": "GO_SMALL_BOX_1",
        "go-big-spot-0": "GO_BIG_SPOT_0",
        "go-big-spot-1": "GO_BIG_SPOT_1",
        "push": "PUSH",
        "dont-push": "STAY",
        "stay": "STAY",
    },
    "warehouse": {
        "fetch-tool-0-first": "LOOK_FOR_0",
        "fetch-tool-1-first": "LOOK_FOR_1",
        "fetch-tool-2-first": "LOOK_FOR_2",
    },
    "overcooked": {"stay": "STAY", "get-tomato": "GET_TOMATO", "move-left": "LEFT"},
}


def work(seen, i, world):
    """The script's work: the macro of agent i if nothing is asked."""
    if world == "box_pushing":  # observation 1: the big box is ahead
        return "PUSH" if seen.observation[i, 1] else f"GO_BIG_SPOT_{i}"
    step = seen.memory[i] = seen.memory.get(i, -1) + 1
    if world == "warehouse":  # the plan has a macro for each decision
        plan = BEST_PLANS[None][i]
        return plan[min(step, len(plan) - 1)]
    plan = BEST_PLAN[i]  # the kitchen's plan has a move for each tick
    return MOVES[plan[seen.time]] if seen.time < len(plan) else "STAY"


def script(world, listens):
    """An agent that works by a script, and obeys what it knows how to obey if it listens."""

    def agent(seen):
        choices = []
        for i in range(len(seen.agents)):
            asked = OBEY[world].get(seen.kind[i]) if listens else None
            asked = asked[i] if isinstance(asked, tuple) else asked
            if not seen.idle[i]:
                choices.append(None)
            elif asked in seen.macros[i] and seen.available[i, seen.macros[i].index(asked)]:
                choices.append(asked)
            elif listens and seen.kind[i] and world == "overcooked":
                choices.append("unsure")  # it asks back and waits
            else:
                choices.append(work(seen, i, world))
        return choices

    return agent


def network(seed=0):
    """A policy in numpy that was never trained: one layer, sampled."""
    rng, weights = np.random.default_rng(seed), {}

    def agent(seen):
        count = seen.available.shape[1]
        if not weights:
            weights["w"] = rng.normal(size=(seen.observation.shape[1], count))
        logits = np.where(seen.available, seen.observation @ weights["w"], -np.inf)
        shares = np.exp(logits - logits.max(1, keepdims=True))
        return [rng.choice(count, p=row / row.sum()) for row in shares]

    return agent


class Words:
    """What is seen, in words."""

    def __init__(self, world):
        self.env = mavic.make(world)

    def __call__(self, seen):
        scene = self.env.scene(seen.state, np.zeros(len(seen.agents), int))
        lines = [f"Tick {seen.time}.", painting.text(scene)]
        for i, agent in enumerate(seen.agents):
            asked = f" It is told: “{seen.text[i]}”." if seen.text[i] else ""
            if not seen.idle[i]:
                lines.append(f"{agent} goes on with {seen.running[i]}.{asked}")
            else:
                ran = f" It ran {seen.running[i]} before." if seen.running[i] else ""
                offered = " ".join(self.offered(seen, i))
                lines.append(f"{agent} decides.{asked}{ran} It can: {offered}")
        return "\n".join(lines)

    @staticmethod
    def offered(seen, i):
        """The macros that agent i can choose."""
        return [name for name, can in zip(seen.macros[i], seen.available[i], strict=False) if can]


TASK = """You lead a team. Choose what each agent that decides does next, from what it can do. Instructions go before
the team's job. Answer with JSON alone, such as {"robot_0": "STAY"}; "unsure" asks the person back."""


def model(world, url, name="default", key="", seconds=30.0):
    """A language model behind an OpenAI-compatible endpoint. What is no macro, or comes too late, counts as unsure."""
    words, address = Words(world), url.rstrip("/") + "/chat/completions"
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )
    job = api.known(world).job

    def agent(seen):
        messages = [
            {"role": "system", "content": f"{TASK}\nThe job: {job}"},
            {"role": "user", "content": words(seen)},
        ]
        body = {"model": name, "temperature": 0, "messages": messages}
        try:
            request = urllib.request.Request(address, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=seconds) as reply:
                said = json.load(reply)["choices"][0]["message"]["content"]
            chosen = dict(json.loads(said[said.index("{") : said.rindex("}") + 1]))
        except (OSError, ValueError, LookupError, TypeError):
            chosen = {}
        picked = [chosen.get(one) for one in seen.agents]
        return [
            choice if choice in words.offered(seen, i) else "unsure"
            for i, choice in enumerate(picked)
        ]

    return agent


def person(world, read=input, write=print):
    """Somebody at a terminal, who types a macro for each agent that decides; "?" asks back, an empty line rests."""
    words = Words(world)

    def agent(seen):
        write(words(seen))
        choices = [None] * len(seen.agents)
        for i in np.flatnonzero(seen.idle):
            offered = words.offered(seen, i)
            while (typed := read(f"{seen.agents[i]}> ").strip().upper()) not in (*offered, "", "?"):
                write(f"{typed} is none of: {' '.join(offered)}")
            choices[i] = typed if typed in offered else "unsure" if typed == "?" else None
        return choices

    return agent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("world", choices=sorted(OBEY))
    parser.add_argument("agents", nargs="*", default=["script", "deaf", "network"])
    parser.add_argument("--url", help="of the language model")
    parser.add_argument("--condition", default="live/by-kind")
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--out")
    args = parser.parse_args()
    made = {
        "script": lambda: script(args.world, listens=True),
        "deaf": lambda: script(args.world, listens=False),
        "network": network,
        "model": lambda: model(args.world, args.url),
        "person": lambda: person(args.world),
    }
    if wrong := [name for name in args.agents if name not in made]:
        parser.error(f"no agent is called {wrong[0]!r}; there are {', '.join(made)}")
    if "model" in args.agents and not args.url:
        parser.error("a language model needs --url")
    for name in args.agents:
        which = dict(name=name, condition=args.condition, episodes=args.episodes, out=args.out)
        try:
            judged = mavic.judge(
                made[name](), args.world, at_once=1 if name == "person" else 16, **which
            )
        except EOFError:
            sys.exit("the person has left; nothing was written")
        shown = (
            f"{key} {'—' if v is None else format(v, '.3f')}" for key, v in judged.summary().items()
        )
        print(f"{name}: {', '.join(shown)}")
