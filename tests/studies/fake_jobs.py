"""Jobs that train nothing: each counts to COUNT in its folder and goes on where an earlier attempt was."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from mavic.studies.jobs import Job

COUNT = 20
SCRIPT = """
import pathlib, sys, time
folder, pause, fails = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "fails"
counted = folder / "counted.txt"
start = len(counted.read_text().split()) if counted.exists() else 0
(folder / "starts.txt").open("a").write(f"{start}\\n")
for number in range(start, 20):
    with counted.open("a") as file:
        file.write(f"{number}\\n")
    print("counted", number, flush=True)
    time.sleep(pause)
sys.exit(3 if fails else 0)
"""


def fake(folder: Path, name: str, pause: float = 0.0, fails: bool = False) -> Job:
    own = folder / name
    arguments = ("-c", SCRIPT, str(own), str(pause), "fails" if fails else "ends")
    return Job(name=name, folder=own, arguments=arguments)


def counted(job: Job) -> list[int]:
    return [int(word) for word in (job.folder / "counted.txt").read_text().split()]


def starts(job: Job) -> list[int]:
    return [int(word) for word in (job.folder / "starts.txt").read_text().split()]


def main() -> None:
    """A Ray cluster of two nodes; one is killed while its jobs run. Prints how each job ended."""
    import json
    import threading

    from ray.cluster_utils import Cluster

    from mavic.studies import engines

    folder = Path(sys.argv[1])
    jobs = [fake(folder, f"job-{number}", pause=0.3) for number in range(4)]
    quiet = {"include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, **quiet})
    worker = cluster.add_node(num_cpus=2)
    ended: dict[str, int] = {}

    def kill() -> None:
        """Kill the worker's processes once all four jobs run, two of them there."""
        while sum((job.folder / "starts.txt").exists() for job in jobs) < 4:
            time.sleep(0.1)
        time.sleep(0.6)
        cluster.remove_node(worker, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    place = engines.Settings(folder=folder, options={"address": cluster.address, "cpus": 1})
    engines.ENGINES["ray"](
        jobs, place, lambda job, status: ended.update({job.name: status}), lambda *_: None
    )
    killer.join()
    cluster.shutdown()
    print(json.dumps(ended))


if __name__ == "__main__":
    main()
