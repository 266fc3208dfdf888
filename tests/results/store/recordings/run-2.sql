-- A run's file of version 2, as assay wrote it.
BEGIN TRANSACTION;
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "about" VALUES('assay','0.1');
INSERT INTO "about" VALUES('ended','whole');
INSERT INTO "about" VALUES('part','a6a706b399614aa5909094bec4d36e31');
INSERT INTO "about" VALUES('run','{"id": "20261120T120003.000-000003", "at": "2026-11-20T12:00:00+00:00", "phases": ["production"], "nodes": ["n0001"], "spec_commit": "c0ffee", "dirty": false, "suite_hash": "5555555555555555555555555555555555555555555555555555555555555555", "who": "bo"}');
CREATE TABLE artefact (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY (subject, check_, name)) WITHOUT ROWID;
INSERT INTO "artefact" VALUES(1,1,'evidence/probe','efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef',4096);
INSERT INTO "artefact" VALUES(1,1,'log/probe','cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd',812);
INSERT INTO "artefact" VALUES(2,1,'evidence/probe','efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef',4096);
INSERT INTO "artefact" VALUES(2,1,'log/probe','cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd',812);
CREATE TABLE check_ (id INTEGER PRIMARY KEY, name TEXT NOT NULL, fault TEXT NOT NULL, phases TEXT NOT NULL,
  active INTEGER NOT NULL);
INSERT INTO "check_" VALUES(1,'suites/production/test_gpu.py::test_heat','gpu.thermal','["production"]',0);
CREATE TABLE document (id INTEGER PRIMARY KEY, digest TEXT NOT NULL, at TEXT NOT NULL, basis TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '');
INSERT INTO "document" VALUES(1,'abababababababababababababababababababababababababababababababab','2026-11-20T12:00:00+00:00','[2, "boot-1", ""]','');
CREATE TABLE gauge (id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, at_least REAL, at_most REAL,
  source TEXT NOT NULL);
INSERT INTO "gauge" VALUES(1,'temperature','C',NULL,85.0,'specs');
CREATE TABLE left_out (check_ TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (check_, subject)) WITHOUT ROWID;
CREATE TABLE measurement (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, n INTEGER NOT NULL,
  gauge INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (subject, check_, n)) WITHOUT ROWID;
INSERT INTO "measurement" VALUES(1,1,0,1,93.5);
INSERT INTO "measurement" VALUES(2,1,0,1,93.5);
CREATE TABLE outcome (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, verdict INTEGER NOT NULL, reason INTEGER,
  document INTEGER, micros INTEGER NOT NULL, known INTEGER, observed INTEGER,
  PRIMARY KEY (subject, check_)) WITHOUT ROWID;
INSERT INTO "outcome" VALUES(1,1,1,2,1,500000,NULL,NULL);
INSERT INTO "outcome" VALUES(2,1,1,2,1,500000,NULL,NULL);
INSERT INTO "outcome" VALUES(3,1,0,NULL,1,500000,NULL,NULL);
CREATE TABLE subject (id INTEGER PRIMARY KEY, name TEXT NOT NULL, node TEXT NOT NULL);
INSERT INTO "subject" VALUES(1,'a/n0001/gpu0','n0001');
INSERT INTO "subject" VALUES(2,'a/n0001/gpu1','n0001');
INSERT INTO "subject" VALUES(3,'a/n0001/gpu2','n0001');
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO "text" VALUES(1,'the check was judged twice in one run: two functions of its module have this name');
INSERT INTO "text" VALUES(2,'it is hot');
COMMIT;
PRAGMA user_version = 2;
