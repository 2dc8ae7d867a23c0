"""Database tables; a test compares them with the migrations.

JSON is stored as text, so that both databases return exactly the stored value. Times are seconds
since 1970 (UTC). Triggers make ``revisions`` and ``audit`` append-only.
"""

from __future__ import annotations

import sqlalchemy as sa

_HELD = sa.text("state = 'leased'")
metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("name_key", sa.String(80), nullable=False, unique=True),
    sa.Column("password_hash", sa.Text, nullable=True),
    sa.Column("admin", sa.Boolean, nullable=False),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("preferences", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
)
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("token_hash", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False, index=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
)
projects = sa.Table(
    "projects",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("title", sa.String(300), nullable=False),
    sa.Column("workflow", sa.Text, nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("language", sa.String(20), nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("created_by", sa.ForeignKey("users.id"), nullable=False),
)
memberships = sa.Table(
    "memberships",
    metadata,
    sa.Column("project_id", sa.ForeignKey("projects.id"), primary_key=True),
    sa.Column("user_id", sa.ForeignKey("users.id"), primary_key=True),
    sa.Column("roles", sa.String(100), nullable=False),
    sa.Column("pseudonym", sa.String(40), nullable=False),
    sa.Column("daily_limit", sa.Integer, nullable=True),
    sa.Column("weekly_limit", sa.Integer, nullable=True),
    sa.Column("training", sa.String(10), nullable=False),
    sa.Column("training_round", sa.Integer, nullable=False),
    sa.Column("consent_at", sa.Double, nullable=True),
    sa.Column("joined_at", sa.Double, nullable=False),
    sa.UniqueConstraint("project_id", "pseudonym"),
    sa.Index("ix_memberships_user_id", "user_id"),
)
invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("project_id", sa.ForeignKey("projects.id"), nullable=False, index=True),
    sa.Column("roles", sa.String(100), nullable=False),
    sa.Column("note", sa.String(300), nullable=False),
    sa.Column("created_by", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("used_at", sa.Double, nullable=True),
    sa.Column("used_by", sa.ForeignKey("users.id"), nullable=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
)
items = sa.Table(
    "items",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("project_id", sa.ForeignKey("projects.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("item_key", sa.String(300), nullable=False),
    sa.Column("group_key", sa.String(300), nullable=False),
    sa.Column("images", sa.Text, nullable=False),
    sa.Column("shown", sa.Text, nullable=False),
    sa.Column("prelabels", sa.Text, nullable=False),
    sa.Column("gold", sa.Text, nullable=True),
    sa.Column("hidden", sa.Text, nullable=False),
    sa.Column("training_round", sa.Integer, nullable=False),
    sa.Column("owner_id", sa.ForeignKey("users.id"), nullable=True),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.UniqueConstraint("project_id", "item_key"),
    sa.Index("ix_items_project_id_number", "project_id", "number"),
)
assignments = sa.Table(
    "assignments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("project_id", sa.ForeignKey("projects.id"), nullable=False),
    sa.Column("item_id", sa.ForeignKey("items.id"), nullable=False),
    sa.Column("group_key", sa.String(300), nullable=False),
    sa.Column("stage", sa.Integer, nullable=False),
    sa.Column("slot", sa.Integer, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("training_round", sa.Integer, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=True),
    sa.Column("lease_until", sa.Double, nullable=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("answer", sa.Text, nullable=True),
    sa.Column("submitted_at", sa.Double, nullable=True),
    sa.Column("seconds", sa.Double, nullable=True),
    sa.UniqueConstraint("item_id", "stage", "slot"),
    sa.UniqueConstraint("item_id", "stage", "user_id"),
    sa.Index("ix_assignments_queue", "project_id", "state", "stage", "place", "slot"),
    sa.Index("ix_assignments_user_group", "user_id", "project_id", "group_key"),
    sa.Index("ix_assignments_user_time", "user_id", "project_id", "submitted_at"),
    # Partial index: each person holds only one or two leased assignments.
    sa.Index(
        "ix_assignments_held", "user_id", "project_id", sqlite_where=_HELD, postgresql_where=_HELD
    ),
)
drafts = sa.Table(
    "drafts",
    metadata,
    sa.Column("assignment_id", sa.ForeignKey("assignments.id"), primary_key=True),
    sa.Column("user_id", sa.ForeignKey("users.id"), primary_key=True),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("saved_at", sa.Double, nullable=False),
)
revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("project_id", sa.ForeignKey("projects.id"), nullable=False),
    sa.Column("item_id", sa.ForeignKey("items.id"), nullable=False),
    sa.Column("assignment_id", sa.ForeignKey("assignments.id"), nullable=False),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("stage", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("action", sa.String(10), nullable=False),
    sa.Column("answer", sa.Text, nullable=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("seconds", sa.Double, nullable=True),
    sa.UniqueConstraint("assignment_id", "version"),
    sa.Index("ix_revisions_item_id", "item_id", "id"),
    sa.Index("ix_revisions_project_id", "project_id", "id"),
)
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=True),
    sa.Column("project_id", sa.ForeignKey("projects.id"), nullable=True),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("subject", sa.String(80), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index("ix_audit_project_id", "project_id", "id"),
)
exposures = sa.Table(
    "exposures",
    metadata,
    sa.Column("user_id", sa.ForeignKey("users.id"), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("projects.id"), primary_key=True),
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("item_id", sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
)
skips = sa.Table(
    "skips",
    metadata,
    sa.Column("project_id", sa.ForeignKey("projects.id"), primary_key=True),
    sa.Column("user_id", sa.ForeignKey("users.id"), primary_key=True),
    sa.Column("group_key", sa.String(300), primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
)
media = sa.Table(
    "media",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("projects.id"), nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("media_type", sa.String(40), nullable=False),
    sa.Column("width", sa.Integer, nullable=False),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("name", sa.String(300), nullable=False),
    sa.UniqueConstraint("project_id", "sha256"),
)
login_attempts = sa.Table(
    "login_attempts",
    metadata,
    sa.Column("attempt", sa.String(32), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Index("ix_login_attempts_key", "key", "at"),
    sa.Index("ix_login_attempts_at", "at"),
)
