"""Recurrent PPO with macro-actions in torch, in one file: what the correction changes at a change of instruction.

    pip install 'mavic[torch]'
    python examples/ppo_torch.py --correction cut --seed 1
    python examples/ppo_torch.py --figure results/ppo_torch     # draws what the runs wrote there

Two robots push boxes. In some episodes a person says "don't push", and from then on each push costs them. An agent
must learn to obey, and still push when nobody said so. With `--correction none` the value after the words enters the
targets before them: robots learn that pushing is bad and settle for less. With `cut` or `shift` they keep the task.

One step of the PettingZoo environment is one tick. A macro runs for several ticks, so each agent decides at its own
times: its row has the reward Σ γ^j r_j and the discount γ^τ.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from mavic.bridges.pettingzoo import parallel_env
from mavic.correction import CORRECTIONS, gae

CONDITION = "paper/add/kinds=dont-push/penalty=150/rate=0.02"
SCALE = 100.0  # the critic's output 1 stands for this value


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--correction", choices=CORRECTIONS, default="cut")
    parser.add_argument("--condition", default=CONDITION, help="how agents are instructed")
    parser.add_argument("--size", type=int, default=4, help="cells on a side of the grid")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--episodes", type=int, default=128, help="of one update")
    parser.add_argument("--envs", type=int, default=32, help="that play side by side")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--gae-lambda", type=float, default=0.9)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.02, help="at the start; falls to 0")
    parser.add_argument("--optimism", type=float, default=0.2, help="weight of negative advantages")
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--test-episodes", type=int, default=512)
    parser.add_argument("--out", type=Path, help="the folder for CORRECTION-SEED.json")
    parser.add_argument("--figure", type=Path, help="draw the runs of this folder, and stop")
    return parser.parse_args(given)


class Recurrent(nn.Module):
    """Two parts, each an input layer, a GRU and an output layer. The second computes what is asked under instructions.

    An input x [..., I] begins with what is heard. Both parts remember the whole history.
    """

    def __init__(self, inputs, heard, hidden, outputs):
        super().__init__()
        self.heard, self.hidden = heard, hidden
        self.first = nn.ModuleList(nn.Linear(inputs, hidden) for _ in range(2))
        self.cell = nn.ModuleList(nn.GRUCell(hidden, hidden) for _ in range(2))
        self.last = nn.ModuleList(nn.Linear(hidden, outputs) for _ in range(2))
        for layer in self.last:
            nn.init.orthogonal_(layer.weight, 0.01)
            nn.init.zeros_(layer.bias)

    def step(self, x, memory):
        """Return the output and the memory [B, 2, H] after one decision, x [B, I]."""
        parts = zip(self.first, self.cell, memory.unbind(1), strict=True)
        after = [cell(torch.tanh(first(x)), before) for first, cell, before in parts]
        base, told = (last(own) for last, own in zip(self.last, after, strict=True))
        return torch.where(self.told(x)[..., None], told, base), torch.stack(after, 1)

    def told(self, x):
        return (x[..., : self.heard] != 0).any(-1)

    def unroll(self, x):
        """Return outputs [K, B, ...] and memories [K, B, 2, H] of sequences x [K, B, I], from an empty memory."""
        memory, outputs, memories = x.new_zeros(x.shape[1], 2, self.hidden), [], []
        for row in x:
            output, memory = self.step(row, memory)
            outputs.append(output)
            memories.append(memory)
        return torch.stack(outputs), torch.stack(memories)


class Player:
    """One environment, and the rows that its agents have made in the present episode."""

    def __init__(self, env, seed, gamma):
        self.env, self.gamma, self.names = env, gamma, env.possible_agents
        self.macros = env.action_space(self.names[0]).n
        self.rng = np.random.default_rng(seed)
        self.begin()

    def begin(self):
        self.seen, self.infos = self.env.reset(seed=int(self.rng.integers(2**31)))
        self.rows = [[] for _ in self.names]
        self.memory = None  # of the actors, [N, 2, H]
        self.macro = [-1] * len(self.names)
        self.time, self.task, self.complied, self.told = 0, 0.0, True, False

    def heard(self):
        """What each agent hears of the instruction, its own part first: one row for each agent."""
        said = [self.seen[name]["instruction"] for name in self.names]
        return [np.concatenate(said[i:] + said[:i]) for i in range(len(said))]

    def inputs(self, i, heard):
        """The input of agent i under an instruction, which need not be the present one."""
        last, who = np.zeros(self.macros, np.float32), np.zeros(len(self.names), np.float32)
        who[i] = 1
        if self.macro[i] >= 0:
            last[self.macro[i]] = 1
        return np.concatenate([heard, self.seen[self.names[i]]["observation"], last, who])

    def deciding(self):
        return [i for i, name in enumerate(self.names) if self.infos[name]["idle"]]

    def tick(self, choices):
        """Start the macros {agent: (macro, log-probability)}, run one tick, and return a finished episode or None."""
        heard = self.heard()
        for i, (macro, logp) in choices.items():
            x = self.inputs(i, heard[i])
            mask = self.seen[self.names[i]]["action_mask"].astype(bool)
            row = dict(x=x, mask=mask, macro=macro, logp=logp, reward=0.0, ticks=0, heard=heard[i])
            self.rows[i].append(row)
            self.macro[i] = macro
        made = self.env.step({name: self.macro[i] for i, name in enumerate(self.names)})
        self.seen, rewards, ended, cut, self.infos = made
        over = ended[self.names[0]] or cut[self.names[0]]
        self.task += self.gamma**self.time * self.infos[self.names[0]]["task_reward"]
        self.time += 1
        after = self.heard()
        for i, name in enumerate(self.names):
            row, info = self.rows[i][-1], self.infos[name]
            row["reward"] += self.gamma ** row["ticks"] * rewards[name]
            row["ticks"] += 1
            asked = bool(row["heard"].any())
            self.told |= asked
            self.complied &= info["complied"] or not asked
            if (
                info["idle"] or over
            ):  # the macro ended, by itself or because everybody was interrupted
                row["discount"] = 0.0 if ended[name] else self.gamma ** row["ticks"]
                row["switched"] = bool(info["interrupted"])
                row["same"] = self.inputs(
                    i, row["heard"]
                )  # h', c: what is seen now, what was heard then
                row["next"] = self.inputs(i, after[i])  # h', c'
                row["last"] = bool(over)
        if not over:
            return None
        episode = dict(rows=self.rows, task=self.task, told=self.told, complied=self.complied)
        self.begin()
        return episode


def play(players, actor, episodes, generator):
    """Return so many whole episodes; all players act in one batch."""
    found = []
    while len(found) < episodes:
        choices = {player: {} for player in players}
        who = [(p, i) for p in players for i in p.deciding()]
        for player in players:
            if player.memory is None:
                player.memory = torch.zeros(len(player.names), 2, actor.hidden)
        if who:
            heard = {p: p.heard() for p in players}
            x = np.stack([p.inputs(i, heard[p][i]) for p, i in who])
            masks = np.stack([p.seen[p.names[i]]["action_mask"] for p, i in who]).astype(bool)
            with torch.no_grad():
                memory = torch.stack([p.memory[i] for p, i in who])
                logits, memory = actor.step(torch.tensor(x, dtype=torch.float32), memory)
            logps = torch.log_softmax(logits.masked_fill(~torch.tensor(masks), -1e9), -1)
            macros = torch.multinomial(logps.exp(), 1, generator=generator)[:, 0]
            for n, (player, i) in enumerate(who):
                player.memory[i] = memory[n]
                choices[player][i] = (int(macros[n]), float(logps[n, macros[n]]))
        for player in players:
            episode = player.tick(choices[player])
            if episode is not None:
                found.append(episode)
    return found


def batch_of(episodes):
    """Return tensors [K, B, ...]: a column for each agent of each episode, padded; `valid` says which rows are real."""
    columns = [rows for episode in episodes for rows in episode["rows"]]
    longest = max(map(len, columns))

    def stack(name, dtype=torch.float32):
        blank = np.zeros_like(np.asarray(columns[0][0][name]))
        made = [[row[name] for row in c] + [blank] * (longest - len(c)) for c in columns]
        return torch.tensor(np.array(made), dtype=dtype).transpose(0, 1)

    batch = {name: stack(name) for name in ("x", "same", "next", "reward", "discount", "logp")}
    batch |= {name: stack(name, torch.bool) for name in ("mask", "switched", "last")}
    batch["macro"] = stack("macro", torch.int64)
    length = torch.tensor([len(c) for c in columns])
    batch["valid"] = torch.arange(longest)[:, None] < length[None]
    batch["mask"] |= ~batch["valid"][..., None]
    # Rows with an instruction and rows without one weigh the same, however many there are of each.
    told = stack("heard").any(-1)
    parts = [batch["valid"] & told, batch["valid"] & ~told]
    batch["weight"] = sum(part / part.sum().clamp(min=1) for part in parts)
    return batch


def advantages_of(critic, batch, args):
    """Return advantages and targets. The critic is asked three times: V(h, c), V(h', c) and V(h', c')."""
    with torch.no_grad():
        value, memory = critic.unroll(batch["x"])
        flat = memory.flatten(0, 1)

        def after(
            name,
        ):  # one further step from the true memory; the memory of that step is thrown away
            output, _ = critic.step(batch[name].flatten(0, 1), flat)
            return output.view_as(value)[..., 0] * SCALE

        return gae(
            batch["reward"],
            batch["discount"],
            value[..., 0] * SCALE,
            after("same"),
            after("next"),
            batch["switched"],
            batch["last"],
            correction=args.correction,
            gae_lambda=args.gae_lambda,
        )


def update(actor, critic, optimizer, batch, args, entropy):
    """Take some PPO steps on a batch. Return the losses of the last one."""
    advantage, target = advantages_of(critic, batch, args)
    advantage = advantage / SCALE  # not normalised: a penalty stays small beside the big box
    # A push alone is punished until both robots come: judged soberly, pushing is given up before it is understood.
    advantage = torch.where(advantage < 0, args.optimism * advantage, advantage)
    for _ in range(args.epochs):
        logits, _ = actor.unroll(batch["x"])
        logps = torch.log_softmax(logits.masked_fill(~batch["mask"], -1e9), -1)
        logp = logps.gather(-1, batch["macro"][..., None])[..., 0]
        ratio = (logp - batch["logp"]).clamp(-10, 10).exp()
        clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
        gain = torch.minimum(ratio * advantage, clipped * advantage)
        spread_out = -(logps.exp() * logps).sum(-1)
        value, _ = critic.unroll(batch["x"])
        error = (value[..., 0] - target / SCALE) ** 2
        actor_loss = -((gain + entropy * spread_out) * batch["weight"]).sum()
        critic_loss = (error * batch["weight"]).sum()
        optimizer.zero_grad()
        (actor_loss + critic_loss).backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        nn.utils.clip_grad_norm_(critic.parameters(), 5.0)
        optimizer.step()
    return float(actor_loss.detach()), float(critic_loss.detach())


def measure(actor, args, condition, seed):
    """Return the mean discounted task return and the share of instructions followed, without learning."""
    generator = torch.Generator().manual_seed(seed)
    players = players_of(args, condition, seed)
    played = play(players, actor, args.test_episodes, generator)
    told = [episode["complied"] for episode in played if episode["told"]]
    followed = float(np.mean(told)) if told else None
    return float(np.mean([episode["task"] for episode in played])), followed


def players_of(args, condition, seed):
    env = dict(condition=condition, size=args.size)
    make = (parallel_env("box_pushing", **env) for _ in range(args.envs))
    return [Player(one, seed * 1000 + n, args.gamma) for n, one in enumerate(make)]


def train(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(args.seed)
    players = players_of(args, args.condition, args.seed)
    heard = players[0].heard()[0]
    sizes = (len(players[0].inputs(0, heard)), len(heard), args.hidden)
    actor, critic = Recurrent(*sizes, players[0].macros), Recurrent(*sizes, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=args.lr, eps=1e-5)
    curve, start = [], time.time()
    for number in range(1, args.updates + 1):
        rest = 1 - (number - 1) / args.updates
        optimizer.param_groups[0]["lr"] = args.lr * max(rest, 0.1)
        played = play(players, actor, args.episodes, generator)
        update(actor, critic, optimizer, batch_of(played), args, args.entropy * rest)
        task = float(np.mean([episode["task"] for episode in played]))
        curve.append({"episodes": number * args.episodes, "task": round(task, 2)})
        if number % 10 == 0:
            print(f"{args.correction} {number * args.episodes:6d} episodes, return {task:7.2f}")
    quiet = args.condition.split("/rate=")[0] + "/rate=0"
    base, _ = measure(actor, args, quiet, 7)
    live, followed = measure(actor, args, args.condition, 8)
    numbers = {name: v for name, v in vars(args).items() if name not in ("out", "figure")}
    score = dict(base=base, task_under_instructions=live, followed=followed)
    print(f"{args.correction}: without instructions {base:.2f}; instructions followed {followed}")
    return dict(**score, seconds=round(time.time() - start), curve=curve, arguments=numbers)


def figure(folder):
    """Draw the curves and the final base returns of all runs of a folder."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*-*.json"))]
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3), width_ratios=(2, 1))
    colours = {"none": "#D55E00", "cut": "#0072B2", "shift": "#56B4E9"}
    for place, name in enumerate(CORRECTIONS):
        own = [run for run in runs if run["arguments"]["correction"] == name]
        for run in own:
            points = np.array([[p["episodes"], p["task"]] for p in run["curve"]])
            smooth = np.convolve(points[:, 1], np.ones(5) / 5, "valid")
            left.plot(points[4:, 0], smooth, color=colours[name], linewidth=1, alpha=0.8)
        right.scatter([place] * len(own), [run["base"] for run in own], color=colours[name])
    left.set(xlabel="training episodes", ylabel="task return in training")
    right.set(ylabel="return without instructions", xlim=(-0.5, 2.5))
    right.set_xticks(range(3), ["naive", "cut", "shift"])
    fig.tight_layout()
    fig.savefig(folder / "ppo_torch.svg")
    fig.savefig(folder / "ppo_torch.png", dpi=150)


if __name__ == "__main__":
    args = arguments()
    if args.figure:
        figure(args.figure)
    else:
        result = train(args)
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            text = json.dumps(result, indent=1) + "\n"
            (args.out / f"{args.correction}-{args.seed}.json").write_text(text)
