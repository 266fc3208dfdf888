-- The same in PostgreSQL, by pg_dump.
CREATE FUNCTION public.assay_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TABLE public.assay_ledger (
    version integer NOT NULL
);
CREATE SEQUENCE public.assay_ledger_version_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.assay_ledger_version_seq OWNED BY public.assay_ledger.version;
CREATE TABLE public.chain (
    name text NOT NULL,
    seq integer NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.entry (
    seq integer NOT NULL,
    id text NOT NULL,
    at text NOT NULL,
    kind text NOT NULL,
    node text NOT NULL,
    body text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.lease (
    name text NOT NULL,
    holder text NOT NULL,
    until_s double precision NOT NULL
);
CREATE TABLE public.measurement (
    seq integer NOT NULL,
    outcome integer NOT NULL,
    gauge integer NOT NULL,
    value double precision NOT NULL
);
CREATE SEQUENCE public.measurement_seq_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.measurement_seq_seq OWNED BY public.measurement.seq;
CREATE TABLE public.newest (
    "check" integer NOT NULL,
    subject integer NOT NULL,
    verdict integer NOT NULL,
    node integer NOT NULL,
    measured_s double precision NOT NULL,
    outcome integer NOT NULL
);
CREATE TABLE public.outcome (
    seq integer NOT NULL,
    run integer NOT NULL,
    measured_s double precision NOT NULL,
    "check" integer NOT NULL,
    subject integer NOT NULL,
    node integer NOT NULL,
    verdict integer NOT NULL,
    reason integer NOT NULL,
    fault integer NOT NULL,
    phases integer NOT NULL,
    active boolean NOT NULL,
    evidence integer NOT NULL,
    evidence_at integer NOT NULL,
    basis integer NOT NULL,
    judged_by integer NOT NULL,
    micros bigint NOT NULL
);
CREATE TABLE public.run (
    seq integer NOT NULL,
    id text NOT NULL,
    at text NOT NULL,
    phases text NOT NULL,
    nodes text NOT NULL,
    spec_commit text NOT NULL,
    dirty boolean NOT NULL,
    suite_hash text NOT NULL,
    who text NOT NULL,
    texts integer NOT NULL,
    outcomes integer NOT NULL,
    digest text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.text (
    seq integer NOT NULL,
    key text NOT NULL,
    long text
);
CREATE SEQUENCE public.text_seq_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.text_seq_seq OWNED BY public.text.seq;
ALTER TABLE ONLY public.assay_ledger ALTER COLUMN version SET DEFAULT nextval('public.assay_ledger_version_seq'::regclass);
ALTER TABLE ONLY public.measurement ALTER COLUMN seq SET DEFAULT nextval('public.measurement_seq_seq'::regclass);
ALTER TABLE ONLY public.text ALTER COLUMN seq SET DEFAULT nextval('public.text_seq_seq'::regclass);
INSERT INTO public.assay_ledger VALUES (5);
INSERT INTO public.chain VALUES ('entry', 2, '12d844715923e64da8942af06ae1d867e8474858e799ae0d9c9351a541362b05');
INSERT INTO public.chain VALUES ('run', 2, 'fc366f14b52a3673c13b088ff83e707ae1f4d477fc70fb344468cda1122046b7');
INSERT INTO public.entry VALUES (1, 'e1', '2026-11-20T12:00:00+00:00', 'node.enrolled', 'n0001', '{"pool": "a", "state": "production"}', 'af6d36c14cecdde1a1ad8fbaddc1eab65ed7ff7be07c46c3bd44cc4d8ba205e3');
INSERT INTO public.entry VALUES (2, 'e2', '2026-11-20T12:00:00+00:00', 'hold', 'n0001', '{"reason": "a test of long ago", "until": "", "who": "ada"}', '12d844715923e64da8942af06ae1d867e8474858e799ae0d9c9351a541362b05');
INSERT INTO public.measurement VALUES (1, 1, 13, 61.5);
INSERT INTO public.measurement VALUES (2, 2, 13, 62.5);
INSERT INTO public.measurement VALUES (3, 4, 13, 62.5);
INSERT INTO public.measurement VALUES (4, 5, 13, 63.5);
INSERT INTO public.newest VALUES (2, 6, 1, 11, 1795176000, 6);
INSERT INTO public.newest VALUES (4, 7, 0, 11, 1795176000, 5);
INSERT INTO public.newest VALUES (4, 10, 0, 11, 1795176000, 4);
INSERT INTO public.outcome VALUES (1, 1, 1795176000, 4, 10, 11, 0, 1, 14, 12, false, 3, 9, 5, 8, 500000);
INSERT INTO public.outcome VALUES (2, 1, 1795176000, 4, 7, 11, 0, 1, 14, 12, false, 3, 9, 5, 8, 500000);
INSERT INTO public.outcome VALUES (3, 1, 1795176000, 2, 6, 11, 1, 15, 14, 12, false, 3, 9, 5, 8, 500000);
INSERT INTO public.outcome VALUES (4, 2, 1795176000, 4, 10, 11, 0, 1, 14, 12, false, 3, 9, 5, 8, 500000);
INSERT INTO public.outcome VALUES (5, 2, 1795176000, 4, 7, 11, 0, 1, 14, 12, false, 3, 9, 5, 8, 500000);
INSERT INTO public.outcome VALUES (6, 2, 1795176000, 2, 6, 11, 1, 15, 14, 12, false, 3, 9, 5, 8, 500000);
INSERT INTO public.run VALUES (1, '20261120T120001.000-000001', '2026-11-20T12:00:00+00:00', '["production"]', '["n0001"]', 'c0ffee', false, '5555555555555555555555555555555555555555555555555555555555555555', 'ada', 15, 3, 'bd0b2f36b3666f951eb64f5407f1fb9bdab98c82cadaa286fc558fd47bb02245', '45fbedf0adb4d9b959ae6b7c5276fce768be45a692c3793d8f24c8317f984ca4');
INSERT INTO public.run VALUES (2, '20261121T120002.000-000002', '2026-11-20T12:00:00+00:00', '["production"]', '["n0001"]', 'c0ffee', false, '5555555555555555555555555555555555555555555555555555555555555555', 'ada', 15, 6, '68837fda8ee6825a3d80dccaa8e76e2443e4561f399e55d357267428861a8857', 'fc366f14b52a3673c13b088ff83e707ae1f4d477fc70fb344468cda1122046b7');
INSERT INTO public.text VALUES (1, '', NULL);
INSERT INTO public.text VALUES (2, 'suites/production/test_gpu.py::test_power', NULL);
INSERT INTO public.text VALUES (3, 'abababababababababababababababababababababababababababababababab', NULL);
INSERT INTO public.text VALUES (4, 'suites/production/test_gpu.py::test_heat', NULL);
INSERT INTO public.text VALUES (5, '[2, "boot-1", ""]', NULL);
INSERT INTO public.text VALUES (6, 'a/n0001', NULL);
INSERT INTO public.text VALUES (7, 'a/n0001/gpu1', NULL);
INSERT INTO public.text VALUES (8, 'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd', NULL);
INSERT INTO public.text VALUES (9, '2026-11-20T12:00:00+00:00', NULL);
INSERT INTO public.text VALUES (10, 'a/n0001/gpu0', NULL);
INSERT INTO public.text VALUES (11, 'n0001', NULL);
INSERT INTO public.text VALUES (12, '["production"]', NULL);
INSERT INTO public.text VALUES (13, '["temperature", "C", null, 85.0, "specs"]', NULL);
INSERT INTO public.text VALUES (14, 'gpu.thermal', NULL);
INSERT INTO public.text VALUES (15, 'it draws too much', NULL);
SELECT pg_catalog.setval('public.assay_ledger_version_seq', 1, false);
SELECT pg_catalog.setval('public.measurement_seq_seq', 4, true);
SELECT pg_catalog.setval('public.text_seq_seq', 15, true);
ALTER TABLE ONLY public.assay_ledger
    ADD CONSTRAINT assay_ledger_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.chain
    ADD CONSTRAINT chain_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.entry
    ADD CONSTRAINT entry_id_key UNIQUE (id);
ALTER TABLE ONLY public.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.measurement
    ADD CONSTRAINT measurement_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.newest
    ADD CONSTRAINT newest_pkey PRIMARY KEY ("check", subject, verdict);
ALTER TABLE ONLY public.outcome
    ADD CONSTRAINT outcome_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_id_key UNIQUE (id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.text
    ADD CONSTRAINT text_key_key UNIQUE (key);
ALTER TABLE ONLY public.text
    ADD CONSTRAINT text_pkey PRIMARY KEY (seq);
CREATE INDEX entry_by_kind ON public.entry USING btree (kind, seq);
CREATE INDEX entry_by_node ON public.entry USING btree (node, seq);
CREATE INDEX measurement_by_outcome ON public.measurement USING btree (outcome);
CREATE INDEX newest_by_node ON public.newest USING btree (node);
CREATE INDEX outcome_by_check ON public.outcome USING btree ("check", measured_s);
CREATE INDEX outcome_by_node ON public.outcome USING btree (node);
CREATE INDEX outcome_by_run ON public.outcome USING btree (run);
CREATE TRIGGER assay_ledger_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.assay_ledger FOR EACH STATEMENT EXECUTE FUNCTION public.assay_append_only();
CREATE TRIGGER entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.entry FOR EACH STATEMENT EXECUTE FUNCTION public.assay_append_only();
CREATE TRIGGER measurement_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.measurement FOR EACH STATEMENT EXECUTE FUNCTION public.assay_append_only();
CREATE TRIGGER outcome_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.outcome FOR EACH STATEMENT EXECUTE FUNCTION public.assay_append_only();
CREATE TRIGGER run_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.run FOR EACH STATEMENT EXECUTE FUNCTION public.assay_append_only();
CREATE TRIGGER text_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.text FOR EACH STATEMENT EXECUTE FUNCTION public.assay_append_only();
ALTER TABLE ONLY public.measurement
    ADD CONSTRAINT measurement_outcome_fkey FOREIGN KEY (outcome) REFERENCES public.outcome(seq);
ALTER TABLE ONLY public.newest
    ADD CONSTRAINT newest_outcome_fkey FOREIGN KEY (outcome) REFERENCES public.outcome(seq);
ALTER TABLE ONLY public.outcome
    ADD CONSTRAINT outcome_run_fkey FOREIGN KEY (run) REFERENCES public.run(seq) DEFERRABLE INITIALLY DEFERRED;
