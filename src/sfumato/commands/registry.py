"""Every command by the words that call it, in the order of the help.

``survey serve`` alone is in ``cli``: the service that it starts stands above the commands.
"""

from typing import Any, Final

from sfumato.commands import (
    answers,
    dp2pub,
    evaluate,
    publish,
    recommend,
    survey,
    survey_answer,
)
from sfumato.commands.request import Command

GROUPS: Final[dict[str, str]] = {
    "answers": answers.GROUP,
    "recommend": recommend.GROUP,
    "survey": "Collect answers that devices randomize: serve, create, invite, answer, export.",
}
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
        survey.CREATE,
        survey.INVITE,
        survey.OPEN,
        survey.CLOSE,
        survey.STATUS,
        survey.EXPORT,
        survey.VERIFY,
        survey_answer.COMMAND,
    )
}
