"""On a Ray cluster of two nodes a worker is killed, then a node is lost. Prints what happened as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time

import numpy as np
import ray
import toy_simulators as toys
from ray.cluster_utils import Cluster

from mavic.simulators import cluster
from mavic.simulators.worlds import python_world

SMALL = {"object_store_memory": 80_000_000}
KEYS = np.arange(8, dtype=np.int32).reshape(4, 2)
STAY, FRESH = np.zeros((4, 2), np.int32), np.ones((4, 2), bool)


def ask(actor, function):
    return ray.get(actor.__ray_call__.remote(function))


def main() -> None:
    """Play some ticks of four simulators in two workers, one on each node. Each worker is lost once."""
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False, **SMALL}
    )
    second = nodes.add_node(num_cpus=2, **SMALL)
    count = cluster.use(nodes.address, workers=2)
    pool = python_world("line", toys.line, horizon=9, actions=toys.ACTIONS, workers=1)().pool
    _, rows = pool.reset(KEYS)

    def actors():
        return [worker.actor for worker in pool._workers._places]

    def places():
        return [ask(one, lambda _: ray.get_runtime_context().get_node_id()) for one in actors()]

    at_first = places()
    found = {"workers": count, "nodes": len(set(at_first)), "lost": [], "same": []}

    def lose(numbers, kill):
        """Lose workers between two ticks. Note how many episodes they held, how many failed, and that all goes on."""
        handles = pool.tick(pool.reset(KEYS)[0], STAY, FRESH)[0]
        held = int(np.isin(pool._kept.home[handles[:, 0]], numbers).sum())
        lost = [actors()[number] for number in numbers]
        kill()
        for actor in lost:
            with contextlib.suppress(ray.exceptions.RayActorError):
                while True:  # until it is gone
                    ask(actor, lambda _: None)
                    time.sleep(0.2)
        failed = np.isnan(pool.tick(handles, STAY, FRESH)[1]).any(-1).sum()
        found["lost"].append([held, int(failed)])
        found["same"].append(bool(np.array_equal(pool.reset(KEYS)[1], rows)))

    near = 1 - at_first.index(second.node_id)
    process = ask(actors()[near], lambda _: os.getpid())
    lose([near], lambda: os.kill(process, signal.SIGKILL))
    there = [number for number, node in enumerate(places()) if node == second.node_id]
    lose(there, lambda: nodes.remove_node(second, allow_graceful=False))
    found["reports"], found["dropped"] = pool.reports()
    print(json.dumps(found))
    pool.close()
    ray.shutdown()
    nodes.shutdown()


if __name__ == "__main__":
    main()
