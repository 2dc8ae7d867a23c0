CREATE TABLE users (
    id SERIAL NOT NULL,
    name VARCHAR(80) NOT NULL,
    name_key VARCHAR(80) NOT NULL,
    password_hash TEXT,
    admin BOOLEAN NOT NULL,
    active BOOLEAN NOT NULL,
    preferences TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (id),
    CONSTRAINT uq_users_name_key UNIQUE (name_key)
);

CREATE TABLE sessions (
    token_hash VARCHAR(64) NOT NULL,
    kind VARCHAR(10) NOT NULL,
    user_id INTEGER NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_sessions PRIMARY KEY (token_hash),
    CONSTRAINT fk_sessions_user_id FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE INDEX ix_sessions_user_id ON sessions (user_id);

CREATE TABLE projects (
    id SERIAL NOT NULL,
    title VARCHAR(300) NOT NULL,
    workflow TEXT NOT NULL,
    settings TEXT NOT NULL,
    language VARCHAR(20) NOT NULL,
    archived BOOLEAN NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    created_by INTEGER NOT NULL,
    CONSTRAINT pk_projects PRIMARY KEY (id),
    CONSTRAINT fk_projects_created_by FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE TABLE memberships (
    project_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    roles VARCHAR(100) NOT NULL,
    pseudonym VARCHAR(40) NOT NULL,
    daily_limit INTEGER,
    weekly_limit INTEGER,
    training VARCHAR(10) NOT NULL,
    training_round INTEGER NOT NULL,
    consent_at DOUBLE PRECISION,
    joined_at DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_memberships PRIMARY KEY (project_id, user_id),
    CONSTRAINT fk_memberships_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT fk_memberships_user_id FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT uq_memberships_project_id_pseudonym UNIQUE (project_id, pseudonym)
);
CREATE INDEX ix_memberships_user_id ON memberships (user_id);

CREATE TABLE invitations (
    id SERIAL NOT NULL,
    token_hash VARCHAR(64) NOT NULL,
    project_id INTEGER NOT NULL,
    roles VARCHAR(100) NOT NULL,
    note VARCHAR(300) NOT NULL,
    created_by INTEGER NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    used_at DOUBLE PRECISION,
    used_by INTEGER,
    revoked BOOLEAN NOT NULL,
    CONSTRAINT pk_invitations PRIMARY KEY (id),
    CONSTRAINT fk_invitations_created_by FOREIGN KEY (created_by) REFERENCES users (id),
    CONSTRAINT fk_invitations_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT fk_invitations_used_by FOREIGN KEY (used_by) REFERENCES users (id),
    CONSTRAINT uq_invitations_token_hash UNIQUE (token_hash)
);
CREATE INDEX ix_invitations_project_id ON invitations (project_id);

CREATE TABLE items (
    id SERIAL NOT NULL,
    project_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    item_key VARCHAR(300) NOT NULL,
    group_key VARCHAR(300) NOT NULL,
    images TEXT NOT NULL,
    shown TEXT NOT NULL,
    prelabels TEXT NOT NULL,
    gold TEXT,
    hidden TEXT NOT NULL,
    training_round INTEGER NOT NULL,
    owner_id INTEGER,
    state VARCHAR(10) NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_items PRIMARY KEY (id),
    CONSTRAINT fk_items_owner_id FOREIGN KEY (owner_id) REFERENCES users (id),
    CONSTRAINT fk_items_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT uq_items_project_id_item_key UNIQUE (project_id, item_key)
);
CREATE INDEX ix_items_project_id_number ON items (project_id, number);

CREATE TABLE media (
    id VARCHAR(32) NOT NULL,
    project_id INTEGER NOT NULL,
    sha256 VARCHAR(64) NOT NULL,
    media_type VARCHAR(40) NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    size INTEGER NOT NULL,
    name VARCHAR(300) NOT NULL,
    CONSTRAINT pk_media PRIMARY KEY (id),
    CONSTRAINT fk_media_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT uq_media_project_id_sha256 UNIQUE (project_id, sha256)
);

CREATE TABLE assignments (
    id SERIAL NOT NULL,
    project_id INTEGER NOT NULL,
    item_id INTEGER NOT NULL,
    group_key VARCHAR(300) NOT NULL,
    stage INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    place INTEGER NOT NULL,
    training_round INTEGER NOT NULL,
    state VARCHAR(10) NOT NULL,
    user_id INTEGER,
    lease_until DOUBLE PRECISION,
    version INTEGER NOT NULL,
    answer TEXT,
    submitted_at DOUBLE PRECISION,
    seconds DOUBLE PRECISION,
    CONSTRAINT pk_assignments PRIMARY KEY (id),
    CONSTRAINT fk_assignments_item_id FOREIGN KEY (item_id) REFERENCES items (id),
    CONSTRAINT fk_assignments_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT fk_assignments_user_id FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT uq_assignments_item_id_stage_slot UNIQUE (item_id, stage, slot),
    CONSTRAINT uq_assignments_item_id_stage_user_id UNIQUE (item_id, stage, user_id)
);
CREATE INDEX ix_assignments_queue ON assignments (project_id, state, stage, place, slot);
CREATE INDEX ix_assignments_user_group ON assignments (user_id, project_id, group_key);
CREATE INDEX ix_assignments_user_time ON assignments (user_id, project_id, submitted_at);

CREATE TABLE drafts (
    assignment_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    answer TEXT NOT NULL,
    saved_at DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_drafts PRIMARY KEY (assignment_id, user_id),
    CONSTRAINT fk_drafts_assignment_id FOREIGN KEY (assignment_id) REFERENCES assignments (id),
    CONSTRAINT fk_drafts_user_id FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE TABLE skips (
    project_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    group_key VARCHAR(300) NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_skips PRIMARY KEY (project_id, user_id, group_key),
    CONSTRAINT fk_skips_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT fk_skips_user_id FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE TABLE exposures (
    user_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    item_id INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    CONSTRAINT pk_exposures PRIMARY KEY (user_id, project_id, day, item_id),
    CONSTRAINT fk_exposures_item_id FOREIGN KEY (item_id) REFERENCES items (id),
    CONSTRAINT fk_exposures_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT fk_exposures_user_id FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE TABLE revisions (
    id SERIAL NOT NULL,
    project_id INTEGER NOT NULL,
    item_id INTEGER NOT NULL,
    assignment_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    version INTEGER NOT NULL,
    action VARCHAR(10) NOT NULL,
    answer TEXT,
    at DOUBLE PRECISION NOT NULL,
    seconds DOUBLE PRECISION,
    CONSTRAINT pk_revisions PRIMARY KEY (id),
    CONSTRAINT fk_revisions_item_id FOREIGN KEY (item_id) REFERENCES items (id),
    CONSTRAINT fk_revisions_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT fk_revisions_assignment_id FOREIGN KEY (assignment_id) REFERENCES assignments (id),
    CONSTRAINT fk_revisions_user_id FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT uq_revisions_assignment_id_version UNIQUE (assignment_id, version)
);
CREATE INDEX ix_revisions_item_id ON revisions (item_id, id);
CREATE INDEX ix_revisions_project_id ON revisions (project_id, id);

CREATE TABLE audit (
    id SERIAL NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    user_id INTEGER,
    project_id INTEGER,
    action VARCHAR(40) NOT NULL,
    subject VARCHAR(80) NOT NULL,
    detail TEXT NOT NULL,
    CONSTRAINT pk_audit PRIMARY KEY (id),
    CONSTRAINT fk_audit_project_id FOREIGN KEY (project_id) REFERENCES projects (id),
    CONSTRAINT fk_audit_user_id FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE INDEX ix_audit_project_id ON audit (project_id, id);
