"""Every command by the words that call it, in the order of the help.

Commands that share their first word are imported when that word is typed, so that the help of the
program answers at once. ``survey serve`` is in ``cli``: the service stands above the commands.
"""

from importlib import import_module
from typing import Any, Final

from sfumato.commands import audit, demo, dp2pub, evaluate, plan, publish
from sfumato.commands.request import Command

COMMANDS: Final[tuple[Command[Any, Any], ...]] = (
    demo.COMMAND,
    plan.COMMAND,
    publish.COMMAND,
    dp2pub.COMMAND,
    evaluate.COMMAND,
    audit.COMMAND,
)
"""Those that are called by one word."""
GROUPS: Final = {
    "schema": "Draft and confirm the public description of a table.",
    "answers": "Answers randomized on the device: simulate, estimate, advise.",
    "recommend": "Private recommenders: fit, list recommendations, evaluate.",
    "survey": "Collect answers that devices randomize: serve, create, invite, answer, export.",
    "ledger": "Show, cap, verify or export the budget ledger.",
}
"""The first words of commands that are called by two, and what they are about."""


def commands_of(group: str) -> tuple[Command[Any, Any], ...]:
    """The commands of a group."""
    commands: tuple[Command[Any, Any], ...] = import_module(f"sfumato.commands.{group}").COMMANDS
    return commands


def every_command() -> dict[str, Command[Any, Any]]:
    """All of them by their words."""
    grouped = (command for group in GROUPS for command in commands_of(group))
    return {command.words: command for command in (*COMMANDS, *grouped)}
