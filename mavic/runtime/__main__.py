"""`python -m mavic.runtime FOLDER`: serve an exported team, where JAX and the command line are not installed."""

from __future__ import annotations

import argparse
import os

NEEDS = "numpy onnxruntime tokenizers fastapi uvicorn websockets"


def main() -> None:
    """Serve the team that the arguments name. MAVIC_TOKEN sets the token."""
    parser = argparse.ArgumentParser(description="Serve an exported team to robots.")
    parser.add_argument("folder", help="what mavic export team wrote")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8643)
    parser.add_argument("--log", help="the file for every event and decision")
    parser.add_argument("--shield", action="store_true", help="enforce instructions")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest macro")
    parser.add_argument(
        "--silent-after", type=float, default=30.0, help="seconds until a robot is given up"
    )
    parser.add_argument("--reader", help="the address of an endpoint that reads sentences")
    asked = parser.parse_args()
    try:
        from mavic.runtime import server
        from mavic.runtime.team import open_team

        team = open_team(
            asked.folder,
            reader=asked.reader,
            greedy=asked.greedy,
            shield=asked.shield,
            silent_after=asked.silent_after,
            log=asked.log,
        )
        token = os.environ.get("MAVIC_TOKEN", "")
        server.serve(
            team, asked.host, asked.port, lambda text: print(text, flush=True), token=token
        )
    except ModuleNotFoundError as error:
        parser.exit(1, f"{error.name} is missing: pip install {NEEDS}\n")
    except (ValueError, OSError) as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
