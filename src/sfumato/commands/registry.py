"""Every command by the words that call it, in the order of the help."""

from typing import Any, Final

from sfumato.commands import audit, demo, dp2pub, evaluate, ledger, plan, publish, schema
from sfumato.commands.request import Command

GROUPS: Final[dict[str, str]] = {
    "schema": schema.GROUP,
    "ledger": ledger.GROUP,
}
"""The first words of commands that are called by two, and what they are about."""
COMMANDS: Final[dict[str, Command[Any, Any]]] = {
    command.words: command
    for command in (
        demo.COMMAND,
        schema.DRAFT,
        schema.CONFIRM,
        plan.COMMAND,
        publish.COMMAND,
        dp2pub.COMMAND,
        evaluate.COMMAND,
        ledger.SHOW,
        ledger.CAP,
        ledger.VERIFY,
        ledger.EXPORT,
        audit.COMMAND,
    )
}
