"""Every command by the words that call it, in the order of the help.

``survey serve`` alone is in ``cli``: the service that it starts stands above the commands.
"""

from typing import Any, Final

from sfumato.commands import (
    answers,
    audit,
    demo,
    dp2pub,
    evaluate,
    ledger,
    plan,
    publish,
    recommend,
    schema,
    survey,
    survey_answer,
)
from sfumato.commands.request import Command

GROUPS: Final[dict[str, str]] = {
    "schema": schema.GROUP,
    "answers": answers.GROUP,
    "recommend": recommend.GROUP,
    "survey": survey.GROUP,
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
        ledger.SHOW,
        ledger.CAP,
        ledger.VERIFY,
        ledger.EXPORT,
        audit.COMMAND,
    )
}
