"""Every command by the words that call it, in the order of the help."""

from typing import Any, Final

from sfumato.commands import answers, dp2pub, evaluate, publish, recommend
from sfumato.commands.request import Command

GROUPS: Final[dict[str, str]] = {"answers": answers.GROUP, "recommend": recommend.GROUP}
"""The first words of commands that are called by two, and what they are about."""
COMMANDS: Final[dict[str, Command[Any, Any]]] = {
    command.words: command
    for command in (
        publish.COMMAND,
        dp2pub.COMMAND,
        evaluate.COMMAND,
        answers.SIMULATE,
        answers.ESTIMATE,
        answers.ADVISE,
        recommend.FIT,
        recommend.TOP,
        recommend.EVALUATE,
    )
}
