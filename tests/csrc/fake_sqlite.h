/* fake_sqlite.h: a table of SQLite's functions that serves rows from memory, for fp_scan. */
#ifndef FAKE_SQLITE_H
#define FAKE_SQLITE_H

#include "check.h"
#include "scan/fp_scan.h"

enum { CELL_INT = 1, CELL_TEXT = 3, CELL_NULL = 5, CELL_NO_MEMORY = 3 + 64, FAKE_COLUMNS = 4 };

typedef struct {
  int type;
  int64_t number;
  const char *text;
  int length;
} cell;

#define INT(value) {CELL_INT, value, NULL, 0}
#define TEXT(bytes) {CELL_TEXT, 0, bytes, (int)sizeof(bytes) - 1}
#define NOTHING {CELL_NULL, 0, NULL, 0}

/* The data of a statement: rows, then `result`. */
struct sqlite3_stmt {
  const cell (*rows)[FAKE_COLUMNS];
  int n_rows, at, result;
  char *text; /* the last text returned; freed at the next step, as in SQLite */
};

struct sqlite3 {
  struct sqlite3_stmt statement;
  int n_open, refuses;
};

static const cell *fake_cell(sqlite3_stmt *statement, int column) {
  CHECK(statement->at > 0 && statement->at <= statement->n_rows);
  CHECK(column >= 0 && column < FAKE_COLUMNS);
  return &statement->rows[statement->at - 1][column];
}

static void fake_forget_text(sqlite3_stmt *statement) {
  free(statement->text);
  statement->text = NULL;
}

static int fake_step(sqlite3_stmt *statement) {
  fake_forget_text(statement);
  CHECK(statement->at <= statement->n_rows);
  return statement->at++ < statement->n_rows ? FP_SQLITE_ROW : statement->result;
}

static int fake_type(sqlite3_stmt *statement, int column) {
  return fake_cell(statement, column)->type & 63;
}

static long long fake_int64(sqlite3_stmt *statement, int column) {
  return fake_cell(statement, column)->number;
}

static const unsigned char *fake_text(sqlite3_stmt *statement, int column) {
  const cell *one = fake_cell(statement, column);
  fake_forget_text(statement);
  if (!one->text) return NULL;
  statement->text = exactly(one->text, (size_t)one->length);
  return (const unsigned char *)statement->text;
}

static int fake_bytes(sqlite3_stmt *statement, int column) {
  return fake_cell(statement, column)->length;
}

static struct sqlite3 *fake_db; /* the one whose statements are counted */

static int fake_finalize(sqlite3_stmt *statement) {
  fake_forget_text(statement);
  fake_db->n_open--;
  return 0;
}

static int fake_prepare(sqlite3 *db, const char *sql, int length, sqlite3_stmt **statement,
                        const char **tail) {
  CHECK(length == -1 && tail == NULL);
  *statement = NULL;
  if (db->refuses) return 1;
  if (!*sql) return 0;
  fake_db = db;
  db->n_open++;
  db->statement.at = 0;
  *statement = &db->statement;
  return 0;
}

static const fp_sqlite_api FAKE_API = {
    .step = fake_step,
    .column_type = fake_type,
    .column_int64 = fake_int64,
    .column_text = fake_text,
    .column_bytes = fake_bytes,
    .finalize = fake_finalize,
    .prepare_v2 = fake_prepare,
};

#endif
