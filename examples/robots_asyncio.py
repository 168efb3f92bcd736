"""A team and three robots, each a process of its own: actions take time, fail and are cancelled; one robot is killed.

    mavic export team warehouse/mavic --out team
    python examples/robots_asyncio.py team --seconds 20 --log robots.jsonl
    mavic replay robots.jsonl --out robots.html

The robots are simulated: they see random numbers and wait. Everything else is what a real system needs. It runs with
numpy and onnxruntime alone.
"""

import argparse
import asyncio
import json
import random
import sys

from mavic.runtime.team import Cancel, EventError, open_team

# ---------------------------------------------------------------- a robot: JSON lines on standard input and output


async def robot(name, sees, slowness):
    """Run macros one at a time. Report what is seen, and how each macro ended."""
    dice, loop = random.Random(name), asyncio.get_running_loop()
    lines: asyncio.Queue = asyncio.Queue()
    action: asyncio.Task | None = None

    def listen():
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, json.loads(line))
        loop.call_soon_threadsafe(lines.put_nowait, None)

    def report(event, **more):
        seen = [float(dice.random() < 0.3) for _ in range(sees)]
        print(json.dumps({"event": event, "observation": seen, **more}), flush=True)

    async def act(number):
        await asyncio.sleep(slowness * dice.uniform(0.5, 2.0))
        report("failed" if dice.random() < 0.1 else "ended", number=number)

    loop.run_in_executor(None, listen)
    report("observed")
    while (order := await lines.get()) is not None:
        if action is not None and not action.done():
            action.cancel()
            if order["do"] == "cancel":
                report("ended", number=order["number"])
        if order["do"] == "start":
            action = asyncio.create_task(act(order["number"]))


# ---------------------------------------------------------------- the team's side


class Fleet:
    """The team and its robots' processes."""

    def __init__(self, team, slowness):
        self.team, self.slowness = team, slowness
        self.processes, self.numbers = {}, {}
        self.counts = {name: dict(start=0, cancel=0, ended=0, failed=0) for name in team.agents}

    async def run(self, name):
        """Start a robot's process and handle what it reports until it is gone."""
        process = self.processes[name] = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--robot", name, "--sees", str(self.team.observation_size),
            "--slowness", str(self.slowness), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async for line in process.stdout:
            self.handle(name, json.loads(line))
        await process.wait()
        self.send(self.team.lost(name))

    def handle(self, name, line):
        event, seen = line.pop("event"), line.pop("observation")
        try:
            if event == "observed":
                self.send(self.team.observed(name, seen))
            else:
                self.counts[name][event] += 1
                self.send(getattr(self.team, event)(name, observation=seen, **line))
        except EventError as error:  # a report that crossed a command on its way; the rest goes on
            print("refused:", error)

    def send(self, commands):
        for command in commands:
            cancels = isinstance(command, Cancel)
            self.counts[command.agent]["cancel" if cancels else "start"] += 1
            if not cancels:
                self.numbers[command.agent] = command.number
            order = dict(do="cancel" if cancels else "start", number=self.numbers[command.agent])
            if not cancels:
                order["macro"] = command.macro
            process = self.processes[command.agent]
            if process.returncode is None and not process.stdin.is_closing():
                process.stdin.write(json.dumps(order).encode() + b"\n")

    async def tick(self):
        while True:
            await asyncio.sleep(0.05)
            self.send(self.team.tick())

    async def talk(self, seconds):
        """A person says something now and then."""
        kinds = self.team.contract.kinds[1:]
        for number in range(4):
            await asyncio.sleep(seconds / 5)
            until = self.team.now() + seconds / 10
            self.send(self.team.say(kind=kinds[number % len(kinds)], until=until).commands)

    async def kill_and_bring_back(self, name, seconds):
        """Kill a robot in mid-task, and start it again later."""
        await asyncio.sleep(seconds / 3)
        while self.team.status(name) != "running":
            await asyncio.sleep(0.01)
        self.processes[name].kill()
        print(f"{name}: killed in mid-task")
        await asyncio.sleep(seconds / 5)
        print(f"{name}: {self.team.status(name)}; it is started again")
        before = self.counts[name]["start"]
        again = asyncio.create_task(self.run(name))
        while self.counts[name]["start"] == before:
            await asyncio.sleep(0.01)
        print(f"{name}: {self.team.status(name)} again")
        await again


async def main(args):
    team = open_team(args.team, log=args.log, silent_after=max(2.0, args.seconds / 4))
    fleet = Fleet(team, slowness=args.seconds / 40)
    jobs = [asyncio.create_task(fleet.run(name)) for name in team.agents]
    jobs.append(asyncio.create_task(fleet.tick()))
    jobs.append(asyncio.create_task(fleet.talk(args.seconds)))
    jobs.append(asyncio.create_task(fleet.kill_and_bring_back(team.agents[1], args.seconds)))
    await asyncio.sleep(args.seconds)
    for job in jobs:
        job.cancel()
    for process in fleet.processes.values():
        if process.returncode is None:
            process.kill()
        await process.wait()
    team.close()
    for name, counts in fleet.counts.items():
        print(name, json.dumps(counts))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("team", nargs="?", help="what mavic export team wrote")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--log")
    parser.add_argument("--robot", help="be this robot")
    parser.add_argument("--sees", type=int)
    parser.add_argument("--slowness", type=float)
    args = parser.parse_args()
    asyncio.run(robot(args.robot, args.sees, args.slowness) if args.robot else main(args))
