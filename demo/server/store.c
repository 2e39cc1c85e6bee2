/*
 * store.c - see server.h. SQLite in a file with a write-ahead log: a connection for each thread that reads, one that writes.
 * Statements are prepared once. Whatever SQLite allocates may be a page of its cache, so each call that may allocate is made
 * in the outer scope; columns are read where they lie, which allocates nothing.
 */
#include "server.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENTS = 16, CACHE_KIB = 4096 };

struct Reader {
    sqlite3* db;
    struct {
        char* sql;
        sqlite3_stmt* statement;
    } kept[STATEMENTS];
    sqlite3_stmt* now;
};

static bool complain(sqlite3* db, const char* what) {
    fprintf(stderr, "tslab_server: %s: %s\n", what, db ? sqlite3_errmsg(db) : "no memory");
    return false;
}

static sqlite3* connect_to(const char* path) {
    sqlite3* db = NULL;
    char pragmas[128];
    snprintf(pragmas, sizeof pragmas, "pragma journal_mode=wal; pragma synchronous=off; pragma cache_size=-%d",
             CACHE_KIB);
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_busy_timeout(db, 10000) != SQLITE_OK ||
        sqlite3_exec(db, pragmas, NULL, NULL, NULL) != SQLITE_OK) {
        complain(db, path);
        sqlite3_close(db);
        return NULL;
    }
    return db;
}

static const char SCHEMA[] =
    "create table if not exists products(id integer primary key, category text, name text, price integer, stock "
    "integer, text text);"
    "create index if not exists of_category on products(category, id);"
    "create table if not exists orders(id integer primary key, key text, user text, total integer, lines text);";

static const char FILL[] = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1) "
                           "insert into products select i, 'category' || (i * 7919 % 199), 'thing ' || (i * 104729 % "
                           "100003), 100 + i * 31 % 9973, i * 17 % 500, "
                           "substr(replace(hex(zeroblob(20 + i * 13 % 60)), '00', 'word' || (i * 37 % 1009) || ' '), "
                           "1, 200 + i * 53 % 500) from n";

bool store_open(const char* path, unsigned products) {
    sqlite3* db = connect_to(path);
    if (db == NULL) return false;
    sqlite3_stmt *count = NULL, *fill = NULL;
    bool ok = sqlite3_exec(db, SCHEMA, NULL, NULL, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(db, "select count(*) from products", -1, &count, NULL) == SQLITE_OK &&
              sqlite3_step(count) == SQLITE_ROW;
    if (ok && sqlite3_column_int64(count, 0) == 0)
        ok = sqlite3_prepare_v2(db, FILL, -1, &fill, NULL) == SQLITE_OK &&
             sqlite3_bind_int64(fill, 1, products) == SQLITE_OK && sqlite3_step(fill) == SQLITE_DONE;
    if (!ok) complain(db, path);
    sqlite3_finalize(count);
    sqlite3_finalize(fill);
    sqlite3_close(db);
    return ok;
}

Reader* reader_open(const char* path) {
    Reader* r = calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    r->db = connect_to(path);
    if (r->db != NULL) return r;
    free(r);
    return NULL;
}

void reader_close(Reader* r) {
    if (r == NULL) return;
    for (int n = 0; n < STATEMENTS && r->kept[n].sql != NULL; n++) {
        sqlite3_finalize(r->kept[n].statement);
        free(r->kept[n].sql);
    }
    sqlite3_close(r->db);
    free(r);
}

/* Returns the statement of the text, prepared at its first use, or NULL. [outer scope] */
static sqlite3_stmt* prepared(Reader* r, const char* sql) {
    int n = 0;
    while (n < STATEMENTS && r->kept[n].sql != NULL && strcmp(r->kept[n].sql, sql) != 0) n++;
    if (n == STATEMENTS) return NULL;
    if (r->kept[n].sql != NULL) return r->kept[n].statement;
    sqlite3_stmt* made = NULL;
    if (sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, NULL) != SQLITE_OK) return NULL;
    r->kept[n].sql = strdup(sql);
    if (r->kept[n].sql == NULL) {
        sqlite3_finalize(made);
        return NULL;
    }
    return r->kept[n].statement = made;
}

static bool bind_all(sqlite3_stmt* s, const Value* values, int count) {
    int result = SQLITE_OK;
    for (int n = 0; n < count && result == SQLITE_OK; n++) switch (values[n].kind) {
        case VALUE_NULL:
            result = sqlite3_bind_null(s, n + 1);
            break;
        case VALUE_INTEGER:
            result = sqlite3_bind_int64(s, n + 1, values[n].integer);
            break;
        case VALUE_REAL:
            result = sqlite3_bind_double(s, n + 1, values[n].real);
            break;
        case VALUE_TEXT:
            result = sqlite3_bind_text64(s, n + 1, values[n].text, values[n].bytes, SQLITE_STATIC, SQLITE_UTF8);
            break;
        }
    return result == SQLITE_OK;
}

const char* reader_begin(Reader* r, const char* sql, const Value* values, int count) {
    if (r->now != NULL) return "a query is under way";
    bool out = tslab_phase_outer();
    r->now = prepared(r, sql);
    if (r->now != NULL && !bind_all(r->now, values, count)) {
        sqlite3_reset(r->now);
        r->now = NULL;
    }
    if (out) tslab_phase_outer_leave();
    return r->now != NULL ? NULL : sqlite3_errmsg(r->db);
}

int reader_step(Reader* r) {
    bool out = tslab_phase_outer();
    int result = sqlite3_step(r->now);
    if (out) tslab_phase_outer_leave();
    return result == SQLITE_ROW ? 1 : result == SQLITE_DONE ? 0 : -1;
}

int reader_columns(Reader* r) { return sqlite3_column_count(r->now); }

Value reader_value(Reader* r, int n) {
    Value v = {.kind = VALUE_NULL};
    switch (sqlite3_column_type(r->now, n)) {
    case SQLITE_INTEGER:
        v = (Value){.kind = VALUE_INTEGER, .integer = sqlite3_column_int64(r->now, n)};
        break;
    case SQLITE_FLOAT:
        v = (Value){.kind = VALUE_REAL, .real = sqlite3_column_double(r->now, n)};
        break;
    case SQLITE_TEXT: /* as a blob: as text a copy with a 0 behind it would be made */
        v.kind = VALUE_TEXT;
        v.text = sqlite3_column_blob(r->now, n);
        v.bytes = (size_t)sqlite3_column_bytes(r->now, n);
        if (v.text == NULL) v.text = "";
        break;
    }
    return v;
}

const char* reader_error(Reader* r) { return sqlite3_errmsg(r->db); }

void reader_end(Reader* r) {
    if (r->now == NULL) return;
    bool out = tslab_phase_outer();
    sqlite3_reset(r->now);
    sqlite3_clear_bindings(r->now);
    if (out) tslab_phase_outer_leave();
    r->now = NULL;
}

/* ---- the writer ---- */

static pthread_t writer;
static Queue* to_write;
static Reader* writes_by;

static bool write_one(const Request* request) {
    if (reader_begin(writes_by, request->sql, request->values, request->value_count) != NULL) return false;
    int stepped = reader_step(writes_by);
    reader_end(writes_by);
    return stepped == 0;
}

static void* write_all(void* ctx) {
    (void)ctx;
    for (Request* all; (all = queue_take_all(to_write, true)) != NULL;) {
        bool ok = sqlite3_exec(writes_by->db, "begin immediate", NULL, NULL, NULL) == SQLITE_OK;
        for (Request* r = all; r != NULL; r = r->next) r->written = ok && write_one(r);
        ok = ok && sqlite3_exec(writes_by->db, "commit", NULL, NULL, NULL) == SQLITE_OK;
        if (!ok) sqlite3_exec(writes_by->db, "rollback", NULL, NULL, NULL);
        for (Request *r = all, *next; r != NULL; r = next) {
            next = r->next;
            r->written = r->written && ok;
            loop_give(r); /* gone from here on */
        }
    }
    return NULL;
}

bool writer_start(const char* path, Queue* queue) {
    to_write = queue;
    writes_by = reader_open(path);
    return writes_by != NULL && pthread_create(&writer, NULL, write_all, NULL) == 0;
}

void writer_stop(void) {
    queue_close(to_write);
    pthread_join(writer, NULL);
    reader_close(writes_by);
}
