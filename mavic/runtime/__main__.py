"""`python -m mavic.runtime FOLDER`: serve an exported team, where JAX and the command line are not installed."""

from __future__ import annotations

import argparse
import os

from mavic.runtime import server
from mavic.runtime.team import open_team


def main() -> None:
    """Serve the team that the arguments name. MAVIC_TOKEN sets the token."""
    parser = argparse.ArgumentParser(description="Serve an exported team to robots.")
    parser.add_argument("folder", help="what mavic export team wrote")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8643)
    parser.add_argument("--log", help="the file for every event and decision")
    parser.add_argument("--shield", action="store_true", help="enforce instructions")
    asked = parser.parse_args()
    try:
        team = open_team(asked.folder, log=asked.log, shield=asked.shield)
        token = os.environ.get("MAVIC_TOKEN", "")
        server.serve(
            team, asked.host, asked.port, lambda text: print(text, flush=True), token=token
        )
    except (ValueError, OSError) as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
