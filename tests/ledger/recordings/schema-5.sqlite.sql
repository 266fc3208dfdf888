-- A ledger that assay wrote with schema 5: the last commit before a row could stand for several subjects.
BEGIN TRANSACTION;
CREATE TABLE assay_ledger (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "assay_ledger" VALUES(5);
CREATE TABLE chain (
	name TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (name)
)
 WITHOUT ROWID

;
INSERT INTO "chain" VALUES('entry',2,'12d844715923e64da8942af06ae1d867e8474858e799ae0d9c9351a541362b05');
INSERT INTO "chain" VALUES('run',2,'c3039e035acb21e1895931c186dea3b8b23618eab218389543e1b5c5886f36a1');
CREATE TABLE entry (
	seq INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	at TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	node TEXT NOT NULL, 
	body TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
INSERT INTO "entry" VALUES(1,'e1','2026-11-20T12:00:00+00:00','node.enrolled','n0001','{"pool": "a", "state": "production"}','af6d36c14cecdde1a1ad8fbaddc1eab65ed7ff7be07c46c3bd44cc4d8ba205e3');
INSERT INTO "entry" VALUES(2,'e2','2026-11-20T12:00:00+00:00','hold','n0001','{"reason": "a test of long ago", "until": "", "who": "ada"}','12d844715923e64da8942af06ae1d867e8474858e799ae0d9c9351a541362b05');
CREATE TABLE lease (
	name TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	until_s FLOAT NOT NULL, 
	PRIMARY KEY (name)
)
 WITHOUT ROWID

;
CREATE TABLE measurement (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	outcome INTEGER NOT NULL, 
	gauge INTEGER NOT NULL, 
	value FLOAT NOT NULL, 
	FOREIGN KEY(outcome) REFERENCES outcome (seq)
);
INSERT INTO "measurement" VALUES(1,1,15,61.5);
INSERT INTO "measurement" VALUES(2,2,15,62.5);
INSERT INTO "measurement" VALUES(3,4,15,62.5);
INSERT INTO "measurement" VALUES(4,5,15,63.5);
CREATE TABLE newest (
	"check" INTEGER NOT NULL, 
	subject INTEGER NOT NULL, 
	verdict INTEGER NOT NULL, 
	node INTEGER NOT NULL, 
	measured_s FLOAT NOT NULL, 
	outcome INTEGER NOT NULL, 
	PRIMARY KEY ("check", subject, verdict), 
	FOREIGN KEY(outcome) REFERENCES outcome (seq)
)
 WITHOUT ROWID

;
INSERT INTO "newest" VALUES(7,8,0,1,1795176000.0,5);
INSERT INTO "newest" VALUES(7,12,0,1,1795176000.0,4);
INSERT INTO "newest" VALUES(11,3,1,1,1795176000.0,6);
CREATE TABLE outcome (
	seq INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	measured_s FLOAT NOT NULL, 
	"check" INTEGER NOT NULL, 
	subject INTEGER NOT NULL, 
	node INTEGER NOT NULL, 
	verdict INTEGER NOT NULL, 
	reason INTEGER NOT NULL, 
	fault INTEGER NOT NULL, 
	phases INTEGER NOT NULL, 
	active BOOLEAN NOT NULL, 
	evidence INTEGER NOT NULL, 
	evidence_at INTEGER NOT NULL, 
	basis INTEGER NOT NULL, 
	judged_by INTEGER NOT NULL, 
	micros BIGINT NOT NULL, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(run) REFERENCES run (seq) DEFERRABLE INITIALLY DEFERRED
);
INSERT INTO "outcome" VALUES(1,1,1795176000.0,7,12,1,0,2,9,6,0,4,5,14,13,500000);
INSERT INTO "outcome" VALUES(2,1,1795176000.0,7,8,1,0,2,9,6,0,4,5,14,13,500000);
INSERT INTO "outcome" VALUES(3,1,1795176000.0,11,3,1,1,10,9,6,0,4,5,14,13,500000);
INSERT INTO "outcome" VALUES(4,2,1795176000.0,7,12,1,0,2,9,6,0,4,5,14,13,500000);
INSERT INTO "outcome" VALUES(5,2,1795176000.0,7,8,1,0,2,9,6,0,4,5,14,13,500000);
INSERT INTO "outcome" VALUES(6,2,1795176000.0,11,3,1,1,10,9,6,0,4,5,14,13,500000);
CREATE TABLE run (
	seq INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	at TEXT NOT NULL, 
	phases TEXT NOT NULL, 
	nodes TEXT NOT NULL, 
	spec_commit TEXT NOT NULL, 
	dirty BOOLEAN NOT NULL, 
	suite_hash TEXT NOT NULL, 
	who TEXT NOT NULL, 
	texts INTEGER NOT NULL, 
	outcomes INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
INSERT INTO "run" VALUES(1,'20261120T120001.000-000001','2026-11-20T12:00:00+00:00','["production"]','["n0001"]','c0ffee',0,'5555555555555555555555555555555555555555555555555555555555555555','ada',15,3,'3f40433e0b57af4bda430ad3904236886a612cbdc809c3c0c239c69343939254','163b46d56f32747dbe7170fb58394133dfd35ba3ae7d22c685fafcfa428600e8');
INSERT INTO "run" VALUES(2,'20261121T120002.000-000002','2026-11-20T12:00:00+00:00','["production"]','["n0001"]','c0ffee',0,'5555555555555555555555555555555555555555555555555555555555555555','ada',15,6,'f709efefb067667971784d47797d5fd50bc7c7a56d3c891665822752eb449ab8','c3039e035acb21e1895931c186dea3b8b23618eab218389543e1b5c5886f36a1');
CREATE TABLE text (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	"key" TEXT NOT NULL, 
	long TEXT, 
	UNIQUE ("key")
);
INSERT INTO "text" VALUES(1,'n0001',NULL);
INSERT INTO "text" VALUES(2,'',NULL);
INSERT INTO "text" VALUES(3,'a/n0001',NULL);
INSERT INTO "text" VALUES(4,'abababababababababababababababababababababababababababababababab',NULL);
INSERT INTO "text" VALUES(5,'2026-11-20T12:00:00+00:00',NULL);
INSERT INTO "text" VALUES(6,'["production"]',NULL);
INSERT INTO "text" VALUES(7,'suites/production/test_gpu.py::test_heat',NULL);
INSERT INTO "text" VALUES(8,'a/n0001/gpu1',NULL);
INSERT INTO "text" VALUES(9,'gpu.thermal',NULL);
INSERT INTO "text" VALUES(10,'it draws too much',NULL);
INSERT INTO "text" VALUES(11,'suites/production/test_gpu.py::test_power',NULL);
INSERT INTO "text" VALUES(12,'a/n0001/gpu0',NULL);
INSERT INTO "text" VALUES(13,'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd',NULL);
INSERT INTO "text" VALUES(14,'[2, "boot-1", ""]',NULL);
INSERT INTO "text" VALUES(15,'["temperature", "C", null, 85.0, "specs"]',NULL);
CREATE INDEX entry_by_kind ON entry (kind, seq);
CREATE INDEX entry_by_node ON entry (node, seq);
CREATE INDEX outcome_by_check ON outcome ("check", measured_s);
CREATE INDEX outcome_by_node ON outcome (node);
CREATE INDEX outcome_by_run ON outcome (run);
CREATE INDEX measurement_by_outcome ON measurement (outcome);
CREATE INDEX newest_by_node ON newest (node);
CREATE TRIGGER assay_ledger_no_update BEFORE UPDATE ON assay_ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER assay_ledger_no_delete BEFORE DELETE ON assay_ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER run_no_update BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER run_no_delete BEFORE DELETE ON run BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER text_no_update BEFORE UPDATE ON text BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER text_no_delete BEFORE DELETE ON text BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER outcome_no_update BEFORE UPDATE ON outcome BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER outcome_no_delete BEFORE DELETE ON outcome BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER measurement_no_update BEFORE UPDATE ON measurement BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER measurement_no_delete BEFORE DELETE ON measurement BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER assay_ledger_no_replace BEFORE INSERT ON assay_ledger WHEN EXISTS (SELECT 1 FROM assay_ledger WHERE version = NEW.version) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER entry_no_replace BEFORE INSERT ON entry WHEN EXISTS (SELECT 1 FROM entry WHERE seq = NEW.seq) OR EXISTS (SELECT 1 FROM entry WHERE id = NEW.id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER run_no_replace BEFORE INSERT ON run WHEN EXISTS (SELECT 1 FROM run WHERE seq = NEW.seq) OR EXISTS (SELECT 1 FROM run WHERE id = NEW.id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER text_no_replace BEFORE INSERT ON text WHEN EXISTS (SELECT 1 FROM text WHERE seq = NEW.seq) OR EXISTS (SELECT 1 FROM text WHERE key = NEW.key) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER outcome_no_replace BEFORE INSERT ON outcome WHEN EXISTS (SELECT 1 FROM outcome WHERE seq = NEW.seq) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER measurement_no_replace BEFORE INSERT ON measurement WHEN EXISTS (SELECT 1 FROM measurement WHERE seq = NEW.seq) BEGIN SELECT RAISE(IGNORE); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('text',15);
INSERT INTO "sqlite_sequence" VALUES('measurement',4);
COMMIT;
