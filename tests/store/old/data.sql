INSERT INTO meta VALUES ('schema', '2'), ('cursor', '7');
INSERT INTO runs (run_id, persona, "key", platform, "trigger", rung, budget, state, created, started) VALUES
    ('r0', 'qa-x', 'k0', 'd', 't', '', '{"calls": 5}', 'ended', '2026-01-01T23:59:50Z', '2026-01-02T00:00:10Z'),
    ('r1', 'qa-x', 'k1', 'd', 't', '', '{}', 'running', '2026-01-02T09:00:00Z', '2026-01-02T09:00:00Z'),
    ('r2', 'qa-y', 'k2', 'd', 't', '', '{}', 'queued', '2026-01-02T10:00:00Z', '');
INSERT INTO budget VALUES ('r0', 'calls', 5), ('r1', 'calls', 3), ('r1', 'writes', 1), ('r2', 'calls', 1);
INSERT INTO skips (persona, "key", reason, at) VALUES ('qa-x', 'k9', 'late', '2026-01-02T00:00:00Z');
