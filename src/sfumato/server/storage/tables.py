"""The tables of the service, the same in SQLite and in PostgreSQL.

Nothing here holds a person: an answer is what a device randomized, a token is its digest, a time is
an hour. Answers lie in blocks in the order of random names, which says nothing of when they came.
Databases keep more than their tables while a round is open: see docs/service.md, "What is kept".
"""

from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
)

VERSION: Final = 2
"""Of these tables; a database of another version is refused."""
METADATA: Final = MetaData()

about: Final = Table(
    "about",
    METADATA,
    Column("version", Integer, primary_key=True),
    Column("instance", String(32), nullable=False),
)
"""The version of these tables."""

surveys: Final = Table(
    "surveys",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("task", String(32), nullable=False, unique=True),
    Column("state", String(12), nullable=False),
    Column("payload", Text, nullable=False),
    Column("signature", String(128), nullable=False),
    Column("secret", LargeBinary(32), nullable=False),
    Column("dataset", String(200)),
    Column("created", String(16), nullable=False),
)
"""Announcements, signed, and the key that signs for each."""

rounds: Final = Table(
    "rounds",
    METADATA,
    Column("survey", Integer, ForeignKey("surveys.id"), primary_key=True),
    Column("round", SmallInteger, primary_key=True),
    Column("payload", Text, nullable=False),
    Column("signature", String(128), nullable=False),
    Column("planned", Text, nullable=False),
    Column("latest", Integer, nullable=False, server_default="0"),
)
"""Questions, signed; ``planned`` says how a question was chosen, as JSON, and
``latest`` the number of the last block of answers."""

access: Final = Table(
    "access",
    METADATA,
    Column("token", LargeBinary(32), primary_key=True),
    Column("survey", Integer, ForeignKey("surveys.id")),
    Column("role", String(8), nullable=False),
    Column("expires", String(17)),
)
"""Who may do what: a role for one survey, or for the server where the survey is null."""

invitations: Final = Table(
    "invitations",
    METADATA,
    Column("survey", Integer, ForeignKey("surveys.id"), primary_key=True),
    Column("token", LargeBinary(32), primary_key=True),
    Column("uses", Integer, nullable=False),
    Column("taken1", Integer, nullable=False, server_default="0"),
    Column("taken2", Integer, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)
"""Who may answer, how often in a round (a person once, a shared device as often as said), and how
often that was done. No column ties an invitation to the answers it let in."""

blocks: Final = Table(
    "blocks",
    METADATA,
    Column("survey", Integer, primary_key=True),
    Column("round", SmallInteger, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("level", SmallInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("answers", LargeBinary, nullable=False),
)
"""What devices sent, many answers in a block: their names, then what they say."""

arrivals: Final = Table(
    "arrivals",
    METADATA,
    Column("survey", Integer, primary_key=True),
    Column("round", SmallInteger, primary_key=True),
    Column("hour", String(14), primary_key=True),
    Column("kept", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""How many answers came in each hour: the finest time that is kept."""

shown: Final = Table(
    "shown",
    METADATA,
    Column("survey", Integer, primary_key=True),
    Column("round", SmallInteger, primary_key=True),
    Column("hour", String(14), nullable=False),
    Column("answers", Integer, nullable=False),
    Column("counts", LargeBinary, nullable=False),
    Column("waiting", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""What owners are shown of an open round, refreshed once an hour: the number of answers, in whole
batches; of each part the counts of an earlier hour; and those that come next. Removed when the
round is closed."""

releases: Final = Table(
    "releases",
    METADATA,
    Column("survey", Integer, ForeignKey("surveys.id"), primary_key=True),
    Column("archive", LargeBinary, nullable=False),
)
"""The published folder of a survey, packed; made once."""
