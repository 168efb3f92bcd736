"""Judges three agents that are no teams of ours: a script that obeys, one that does not listen, and a numpy network.

    python examples/judge_agents.py box_pushing --episodes 32 --out runs
    mavic report runs/box_pushing
    python examples/judge_agents.py rware --options robots 4

They meet the episodes, the instructions and the metrics of trained teams. Any callable can take their place.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import mavic
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
    "rware": {"robot-1-stop": "WAIT"},
    "foraging": {"stop": "WAIT", "agent-1-stop": "WAIT"},
    "jaxmarl": {"cook-1-stop": "WAIT"},
}
# In worlds of other packages the script's work is the first macro of a list that can start. It leaves out what is
# forbidden.
PRIORITY = {
    "rware": ("DELIVER", "RETURN", "FETCH_1", "FETCH_2", "FETCH_3", "WAIT"),
    "foraging": ("GO_1", "GO_2", "WAIT"),
    "jaxmarl": ("SERVE", "TOP_POT", "LOWER_POT", "PLATE", "ONION", "WAIT"),
}
FORBIDDEN = {
    "not-aisle-2": {"FETCH_2"},
    "aisle-1-first": {"FETCH_2", "FETCH_3"},
    "not-food-1": {"GO_1"},
    "not-top-pot": {"TOP_POT"},
}


def work(seen, i, world, listens):
    """The script's work: the macro of agent i if no command holds."""
    if world in PRIORITY:
        if world == "foraging" and str(seen.running[i]).startswith("GO"):
            return "LOAD"  # beside a food
        left_out = FORBIDDEN.get(seen.kind[i], ()) if listens else ()
        can = {m for m, on in zip(seen.macros[i], seen.available[i], strict=False) if on}
        return next(macro for macro in PRIORITY[world] if macro in can and macro not in left_out)
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
                choices.append(work(seen, i, world, listens))
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("world", choices=sorted(OBEY))
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--out")
    parser.add_argument("--options", nargs=2, metavar=("NAME", "NUMBER"))
    args = parser.parse_args()
    options = {args.options[0]: int(args.options[1])} if args.options else {}
    if args.world in PRIORITY:
        sys.path.insert(0, str(Path(__file__).parent / args.world))
        __import__(f"{args.world}_team")
    agents = {
        "script": script(args.world, listens=True),
        "deaf": script(args.world, listens=False),
        "network": network(),
    }
    for name, agent in agents.items():
        judged = mavic.judge(
            agent, args.world, name=name, episodes=args.episodes, out=args.out, **options
        ).summary()
        shown = (f"{key} {'—' if v is None else format(v, '.3f')}" for key, v in judged.items())
        print(f"{name}: {', '.join(shown)}")
