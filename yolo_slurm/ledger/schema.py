"""The ledger's tables. Amounts are whole units, times epoch seconds."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, String, Table, Text

SCHEMA_VERSION: Final = 1

metadata = MetaData()

# One row: the version of this schema.
version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

# A sacct row as it was read, and when; outcome: cost, never-ran or unknown.
observation = Table(
    "observation",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("seen_at", BigInteger, nullable=False),
    Column("cluster", String(64), nullable=False),
    Column("job_id", BigInteger, nullable=False),
    Column("submit", BigInteger, nullable=False),
    Column("job", String(64), nullable=False),
    Column("account", String(128), nullable=False),
    Column("user", String(128), nullable=False),
    Column("partition", String(256), nullable=False),
    Column("qos", String(128), nullable=False),
    Column("state", String(32), nullable=False),
    Column("start", BigInteger),
    Column("end", BigInteger),
    Column("elapsed", BigInteger, nullable=False),
    Column("alloc_tres", Text, nullable=False),
    Column("outcome", String(16), nullable=False),
    Index("observation_attempt", "cluster", "job_id", "submit"),
)

# What a project was given or what was taken from it. `charges` is unique and
# names the attempt of a debit, so that settling twice is settling once; it is
# null for every other kind.
entry = Table(
    "entry",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("project", String(128), nullable=False),
    Column("units", BigInteger, nullable=False),
    Column("by", String(128), nullable=False),
    Column("reason", Text, nullable=False),
    Column("charges", String(160), unique=True),
    Column("observation_id", ForeignKey("observation.id")),
    Index("entry_project", "project", "id"),
)
