/*
 * sqlite3.c - thousands of statements on two threads, each with a database in memory and one on disk: what all queries
 * answer, and what is in the tables at the end, is as with malloc. One phase is all of it.
 */
#include <temporal_slab/sqlite3.h>

#include "adapters/adapter.h"

#include <pthread.h>

static const unsigned long adapter_least = 100000;
enum { ROWS = 3000, THREADS = 2 };

static epoch_domain_t* domain; /* NULL: malloc */

static void start(SlabAllocator* a, size_t budget) {
    domain = adapter_create(a, "sqlite");
    if (domain == NULL) return;
    if (budget != 0) REQUIRE(slab_epoch_set_budget(a, domain->epoch_id, 0, budget, NULL, NULL));
    REQUIRE(tslab_sqlite3_config(domain) == SQLITE_OK);
}

/* What is left for the end of the phase: `forgotten` objects. */
static void stop(uint64_t forgotten) {
    REQUIRE(sqlite3_memory_used() == 0 || forgotten != 0);
    REQUIRE(sqlite3_shutdown() == SQLITE_OK);
    EpochReceipt r = adapter_end(domain);
    REQUIRE(r.objects_released == (domain != NULL ? forgotten : 0));
    domain = NULL;
}

static void adapter_install(SlabAllocator* a) {
    REQUIRE(tslab_sqlite3_config(NULL) == SQLITE_MISUSE);
    start(a, 0);
}

static void adapter_remove(SlabAllocator* a) {
    char* forgotten = sqlite3_mprintf("%s", "forgotten");
    REQUIRE(forgotten != NULL);
    if (a == NULL) sqlite3_free(forgotten);
    stop(a != NULL ? 1 : 0);
}

/* ---- work ---- */

static int add_row(void* out, int n, char** values, char** names) {
    for (int i = 0; i < n; i++) text_format(out, "%s=%.900s|", names[i], values[i] != NULL ? values[i] : "NULL");
    text_add(out, "\n", 1);
    return 0;
}

/* SQLITE_OK, or what is wrong, which is written as well. */
static int run(sqlite3* db, Text* out, const char* sql) {
    char* error = NULL;
    int status = sqlite3_exec(db, sql, add_row, out, &error);
    if (status != SQLITE_OK) text_format(out, "%d %s\n", status, error != NULL ? error : "");
    sqlite3_free(error);
    return status;
}

static const char* const schema =
    "PRAGMA cache_size = 200;"
    "CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT UNIQUE, price REAL, note BLOB);"
    "CREATE INDEX by_kind ON item(kind, price DESC);"
    "CREATE TABLE log(what, old, new);"
    "CREATE TRIGGER priced AFTER UPDATE OF price ON item BEGIN"
    "  INSERT INTO log VALUES (new.name, old.price, new.price); END;"
    "CREATE TABLE sale(id INTEGER PRIMARY KEY, item REFERENCES item(id), n INT CHECK(n > 0), day TEXT);"
    "CREATE VIEW sold AS SELECT kind, sum(n) AS pieces, round(sum(n * price), 2) AS worth FROM sale JOIN item"
    "  ON item.id = sale.item GROUP BY kind;";
static const char* const questions[] = {
    "SELECT * FROM sold ORDER BY worth DESC",
    "SELECT kind, count(*), group_concat(substr(name, 1, 4), '/') FROM item WHERE id % 13 = 0 GROUP BY kind ORDER BY 1",
    "WITH RECURSIVE n(i, f) AS (SELECT 1, '1' UNION ALL SELECT i + 1, f || ',' || i * i FROM n WHERE i < 150)"
    "  SELECT i, length(f), substr(f, -12) FROM n",
    "SELECT name, price, rank() OVER (PARTITION BY kind ORDER BY price DESC, id) AS r,"
    "  sum(price) OVER (ORDER BY id ROWS 10 PRECEDING) FROM item WHERE id < 400 ORDER BY id",
    "SELECT json_group_array(json_object('name', name, 'price', price)) FROM (SELECT * FROM item WHERE id % 401 = 7 ORDER BY id)",
    "SELECT a.name, b.name FROM item a JOIN item b ON a.kind = b.kind AND a.id = b.id + 8 WHERE b.id % 97 = 0 ORDER BY a.id",
    "SELECT what, count(*), max(new) FROM log GROUP BY what ORDER BY what LIMIT 50",
    "SELECT day, sum(n) FROM sale GROUP BY day HAVING sum(n) > 5 ORDER BY 2 DESC, 1",
    "SELECT printf('%s-%08.3f', upper(kind), avg(price)), hex(max(note)) FROM item GROUP BY kind ORDER BY 1",
    "INSERT INTO item(name) VALUES ('without a kind')",
    "INSERT INTO item(kind, name) VALUES ('x', 'name 17')",
    "INSERT INTO sale(item, n) VALUES (1, 0)",
    "SELECT nothing FROM nowhere",
    "PRAGMA integrity_check",
    "EXPLAIN QUERY PLAN SELECT * FROM item WHERE kind = 'wood' ORDER BY price DESC",
};

static int fill(sqlite3* db) {
    sqlite3_stmt* add = NULL;
    int status = sqlite3_prepare_v2(db, "INSERT INTO item(kind, name, price, note) VALUES (?, ?, ?, ?)", -1, &add, NULL);
    static const char* const kinds[] = {"wood", "stone", "glass", "iron", "paper", "cloth", "wool"};
    for (int n = 0; status == SQLITE_OK && n < ROWS; n++) {
        char name[40];
        unsigned char note[64];
        (void)snprintf(name, sizeof name, "name %d", n);
        memset(note, n & 255, sizeof note);
        sqlite3_bind_text(add, 1, kinds[n * 31 % 7], -1, SQLITE_STATIC);
        sqlite3_bind_text(add, 2, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_double(add, 3, n * 7919 % 10007 / 100.0);
        sqlite3_bind_blob(add, 4, note, n % 64, SQLITE_TRANSIENT);
        status = sqlite3_step(add) == SQLITE_DONE ? sqlite3_reset(add) : sqlite3_reset(add) | 256;
    }
    sqlite3_finalize(add);
    return status;
}

/* Single statements, each of them compiled: no text is the same twice. */
static int trade(sqlite3* db, Text* out) {
    int status = SQLITE_OK;
    for (int n = 0; status == SQLITE_OK && n < ROWS; n++) {
        char* sql;
        if (n % 500 == 250) sql = sqlite3_mprintf("SAVEPOINT s%d; DELETE FROM sale WHERE id > %d; ROLLBACK TO s%d; RELEASE s%d", n, n / 2, n, n);
        else if (n % 5 == 0) sql = sqlite3_mprintf("UPDATE item SET price = price + %d.5 WHERE id = %d", n % 11, n * 7 % ROWS + 1);
        else if (n % 7 == 0) sql = sqlite3_mprintf("SELECT name, length(note) FROM item WHERE name = %Q", "name 77");
        else sql = sqlite3_mprintf("INSERT INTO sale(item, n, day) VALUES (%d, %d, date('2024-01-01', '+%d days'))", n * 13 % ROWS + 1, n % 9 + 1, n % 50);
        status = sql != NULL ? run(db, out, sql) : SQLITE_NOMEM;
        sqlite3_free(sql);
    }
    return status;
}

static int dump(sqlite3* db, Text* out) {
    static const char* const tables[] = {"item", "sale", "log", "sqlite_schema"};
    int status = SQLITE_OK;
    for (int i = 0; status == SQLITE_OK && i < 4; i++) {
        char* sql = sqlite3_mprintf("SELECT * FROM %s", tables[i]);
        status = sql != NULL ? run(db, out, sql) : SQLITE_NOMEM;
        sqlite3_free(sql);
    }
    return status;
}

/* SQLITE_OK: all of it is done. */
static int work(Text* out) {
    sqlite3 *db = NULL, *disk = NULL;
    int status = sqlite3_open(":memory:", &db);
    if (status == SQLITE_OK) status = sqlite3_open("", &disk); /* a file of its own, gone with the connection */
    if (status == SQLITE_OK) status = run(db, out, schema);
    if (status == SQLITE_OK) status = run(db, out, "BEGIN");
    if (status == SQLITE_OK) status = fill(db);
    if (status == SQLITE_OK) status = trade(db, out);
    if (status == SQLITE_OK) status = run(db, out, "COMMIT");
    for (size_t i = 0; status == SQLITE_OK && i < sizeof questions / sizeof questions[0]; i++)
        if (run(db, out, questions[i]) == SQLITE_NOMEM) status = SQLITE_NOMEM;
    if (status == SQLITE_OK) {
        sqlite3_backup* backup = sqlite3_backup_init(disk, "main", db, "main");
        while (backup != NULL && (status = sqlite3_backup_step(backup, 20)) == SQLITE_OK) {}
        status = sqlite3_backup_finish(backup);
    }
    if (status == SQLITE_OK) status = run(disk, out, "DELETE FROM item WHERE id % 3 = 0; VACUUM; ALTER TABLE item ADD COLUMN more");
    if (status == SQLITE_OK) status = dump(disk, out);
    REQUIRE(sqlite3_close(db) == SQLITE_OK && sqlite3_close(disk) == SQLITE_OK);
    return status;
}

static void* thread_main(void* out) {
    REQUIRE(work(out) == SQLITE_OK);
    return NULL;
}

static void adapter_run(Text* out, SlabAllocator* a) {
    pthread_t threads[THREADS];
    Text outs[THREADS] = {{NULL, 0, 0}};
    for (int i = 0; i < THREADS; i++) REQUIRE(pthread_create(&threads[i], NULL, thread_main, &outs[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        text_add(out, outs[i].bytes, outs[i].size);
        free(outs[i].bytes);
    }
    REQUIRE(sqlite3_memory_used() == 0);
    REQUIRE(sqlite3_memory_highwater(false) > 1000000);
    if (a != NULL) { /* what SQLite counts is what the phase holds */
        void* p = sqlite3_malloc(100);
        REQUIRE(p != NULL && sqlite3_memory_used() == (sqlite3_int64)slab_usable_size(a, p));
        REQUIRE(sqlite3_msize(p) >= 112 && sqlite3_msize(p) <= 128); /* no more is asked for than is needed */
        REQUIRE((p = sqlite3_realloc(p, 5000)) != NULL &&
                sqlite3_memory_used() == (sqlite3_int64)slab_usable_size(a, p));
        sqlite3_free(p);
        epoch_domain_t* other = adapter_create(a, "other");
        REQUIRE(tslab_sqlite3_config(other) == SQLITE_MISUSE); /* it is in use, and stays where it is */
        sqlite3_free(sqlite3_malloc(100));
        REQUIRE(adapter_end(other).objects_allocated == 0);
    }
}

static void adapter_starve(SlabAllocator* a) {
    unsigned refused = 0, done = 0;
    sqlite3_free(sqlite3_malloc(1));
    stop(0);
    for (size_t budget = 64 << 10; budget <= 64 << 20; budget *= 4) {
        Text out = {NULL, 0, 0};
        start(a, budget);
        int status = work(&out);
        REQUIRE(status == SQLITE_OK || status == SQLITE_NOMEM || status == (SQLITE_NOMEM | 256));
        *(status == SQLITE_OK ? &done : &refused) += 1;
        stop(0);
        free(out.bytes);
    }
    REQUIRE(refused >= 2 && done >= 1);
    start(a, 0);
    REQUIRE(sqlite3_initialize() == SQLITE_OK);
}
