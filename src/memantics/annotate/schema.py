"""The tables. Migrations create them; a test holds the two together.

JSON is kept as text: both databases then give back exactly what was put in. Times are seconds
since 1970 (UTC). ``revisions`` and ``audit`` only grow: triggers refuse anything else.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

_HELD = text("state = 'leased'")
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

users = Table(
    "users",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(80), nullable=False),
    Column("name_key", String(80), nullable=False, unique=True),
    Column("password_hash", Text, nullable=True),
    Column("admin", Boolean, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("preferences", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)
sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("kind", String(10), nullable=False),
    Column("user_id", ForeignKey("users.id"), nullable=False, index=True),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)
projects = Table(
    "projects",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("title", String(300), nullable=False),
    Column("workflow", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("language", String(20), nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("created_by", ForeignKey("users.id"), nullable=False),
)
memberships = Table(
    "memberships",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("roles", String(100), nullable=False),
    Column("pseudonym", String(40), nullable=False),
    Column("daily_limit", Integer, nullable=True),
    Column("weekly_limit", Integer, nullable=True),
    Column("training", String(10), nullable=False),
    Column("training_round", Integer, nullable=False),
    Column("consent_at", Double, nullable=True),
    Column("joined_at", Double, nullable=False),
    UniqueConstraint("project_id", "pseudonym"),
    Index("ix_memberships_user_id", "user_id"),
)
invitations = Table(
    "invitations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False, index=True),
    Column("roles", String(100), nullable=False),
    Column("note", String(300), nullable=False),
    Column("created_by", ForeignKey("users.id"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("used_at", Double, nullable=True),
    Column("used_by", ForeignKey("users.id"), nullable=True),
    Column("revoked", Boolean, nullable=False),
)
items = Table(
    "items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("item_key", String(300), nullable=False),
    Column("group_key", String(300), nullable=False),
    Column("images", Text, nullable=False),
    Column("shown", Text, nullable=False),
    Column("prelabels", Text, nullable=False),
    Column("gold", Text, nullable=True),
    Column("hidden", Text, nullable=False),
    Column("training_round", Integer, nullable=False),
    Column("owner_id", ForeignKey("users.id"), nullable=True),
    Column("state", String(10), nullable=False),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("project_id", "item_key"),
    Index("ix_items_project_id_number", "project_id", "number"),
)
seats = Table(
    "seats",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("group_key", String(300), nullable=False),
    Column("stage", Integer, nullable=False),
    Column("seat", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("training_round", Integer, nullable=False),
    Column("state", String(10), nullable=False),
    Column("user_id", ForeignKey("users.id"), nullable=True),
    Column("lease_until", Double, nullable=True),
    Column("version", Integer, nullable=False),
    Column("answer", Text, nullable=True),
    Column("submitted_at", Double, nullable=True),
    Column("seconds", Double, nullable=True),
    UniqueConstraint("item_id", "stage", "seat"),
    UniqueConstraint("item_id", "stage", "user_id"),
    Index("ix_seats_queue", "project_id", "state", "stage", "place", "seat"),
    Index("ix_seats_user_group", "user_id", "project_id", "group_key"),
    Index("ix_seats_user_time", "user_id", "project_id", "submitted_at"),
    # Of held seats alone: whoever has answered thousands of items holds one or two.
    Index("ix_seats_held", "user_id", "project_id", sqlite_where=_HELD, postgresql_where=_HELD),
)
drafts = Table(
    "drafts",
    metadata,
    Column("seat_id", ForeignKey("seats.id"), primary_key=True),
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("answer", Text, nullable=False),
    Column("saved_at", Double, nullable=False),
)
revisions = Table(
    "revisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("seat_id", ForeignKey("seats.id"), nullable=False),
    Column("user_id", ForeignKey("users.id"), nullable=False),
    Column("stage", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("action", String(10), nullable=False),
    Column("answer", Text, nullable=True),
    Column("at", Double, nullable=False),
    Column("seconds", Double, nullable=True),
    UniqueConstraint("seat_id", "version"),
    Index("ix_revisions_item_id", "item_id", "id"),
    Index("ix_revisions_project_id", "project_id", "id"),
)
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("user_id", ForeignKey("users.id"), nullable=True),
    Column("project_id", ForeignKey("projects.id"), nullable=True),
    Column("action", String(40), nullable=False),
    Column("subject", String(80), nullable=False),
    Column("detail", Text, nullable=False),
    Index("ix_audit_project_id", "project_id", "id"),
)
exposures = Table(
    "exposures",
    metadata,
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("item_id", ForeignKey("items.id"), primary_key=True),
    Column("at", Double, nullable=False),
)
skips = Table(
    "skips",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("user_id", ForeignKey("users.id"), primary_key=True),
    Column("group_key", String(300), primary_key=True),
    Column("at", Double, nullable=False),
)
media = Table(
    "media",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("media_type", String(40), nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("name", String(300), nullable=False),
    UniqueConstraint("project_id", "sha256"),
)
login_attempts = Table(
    "login_attempts",
    metadata,
    Column("attempt", String(32), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("at", Double, nullable=False),
    Index("ix_login_attempts_key", "key", "at"),
    Index("ix_login_attempts_at", "at"),
)
