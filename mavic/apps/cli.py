"""The command line: `mavic --help`. It reads the arguments, imports plugins and runs one command."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import get_args

import tyro
from rich.markup import escape

from mavic import __version__
from mavic.apps import console
from mavic.apps.commands.bench import Bench
from mavic.apps.commands.cache import Cache, keep_compiled
from mavic.apps.commands.check import Check
from mavic.apps.commands.command import Command, UserError
from mavic.apps.commands.evaluate import Evaluate
from mavic.apps.commands.export import Export
from mavic.apps.commands.new import New
from mavic.apps.commands.options import join_lines
from mavic.apps.commands.play import Play
from mavic.apps.commands.replay import Replay
from mavic.apps.commands.report import Report
from mavic.apps.commands.reproduce import Reproduce
from mavic.apps.commands.serve import Serve
from mavic.apps.commands.train import Train
from mavic.apps.commands.words import Words
from mavic.apps.commands.worlds import Worlds
from mavic.session import stopping

COMMANDS = (
    Train
    | Check
    | Evaluate
    | Report
    | Reproduce
    | Replay
    | Play
    | Serve
    | Worlds
    | Words
    | New
    | Export
    | Bench
    | Cache
)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command in `args` (default: those of the process). Errors of the user are one line on standard error."""
    whole_process = args is None
    args = list(sys.argv[1:] if args is None else args)
    if args == ["--version"]:
        print(f"mavic {__version__}")
        return
    try:
        with stopping.on_signals():
            _run(_parse(args))
    except KeyboardInterrupt as stopped:
        _complain(str(getattr(stopped, "said", "")) or "stopped")
        status = stopping.Stopped.status_of(stopped)
        if whole_process:
            _leave(status)
        sys.exit(status)
    except MemoryError:
        _complain("the memory of this machine is used up; fewer seeds or a smaller batch need less")
        sys.exit(1)
    except (UserError, ValueError, ImportError, OSError) as error:
        _complain(_one_line(error))
        sys.exit(1)


def _leave(status: int) -> None:
    """End the process now. Python waits, for minutes, until the device has computed what was started."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # its reader may be gone
            stream.flush()
    if "wandb" in sys.modules:  # it would finish its run after the wait
        sys.modules["wandb"].finish(exit_code=status)
    os._exit(status)


def _complain(text: str) -> None:
    console.ERR.print("[red]mavic:[/] " + escape(text), soft_wrap=True)


def _one_line(error: Exception) -> str:
    """Return an error's message on one line. Errors of the system name their file."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(text.split()) or type(error).__name__


def _parse(args: Sequence[str]) -> Command:
    """Return the command that the arguments ask for."""
    for command in get_args(COMMANDS):
        join_lines(command)
    if args[:1] == ["train"] and (found := Train.with_file(args[1:])) is not None:
        return found
    return tyro.cli(
        COMMANDS,
        args=args,
        prog="mavic",
        description="Train, evaluate and play with teams that obey instructions and still do their task. "
        "mavic --version prints the version.",
    )


def _run(command: Command) -> None:
    from mavic.apps import plugins
    from mavic.language.encoder import ALLOW_DOWNLOAD, EncoderError

    command.check()
    from mavic.language.reader import read

    read.LISTENERS[:] = [lambda text: console.ERR.print(text, style="dim")]
    if isinstance(command, Train | Bench):
        from mavic.training import devices

        devices.use_cores()  # before a plugin computes anything
    keep_compiled()
    if command.allow_download:
        os.environ[ALLOW_DOWNLOAD] = "1"
    plugins.load(command.plugins)
    try:
        command.run()
    except EncoderError as error:
        raise UserError(str(error)) from None
    except ValueError as error:
        if advice := plugins.advice(command):
            raise UserError(f"{error}; {advice}") from None
        raise
