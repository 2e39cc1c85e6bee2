/* Queries in memory contexts of PostgreSQL, in a function of the server: a context for a query, one for each row. */
#include <postgres.h>
#include <fmgr.h>
#include <utils/memutils.h>

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(report);

static char* kept; /* of the report, longer than a query */

static void close_cursor(void* name) { printf("  closed %s\n", (char*)name); }

static void query(MemoryContext report, int n) {
    MemoryContext query = AllocSetContextCreate(report, "query", ALLOCSET_DEFAULT_SIZES);
    MemoryContext row = AllocSetContextCreate(query, "row", ALLOCSET_SMALL_SIZES);
    MemoryContextSwitchTo(query);
    MemoryContextCallback* at_end = palloc(sizeof *at_end);
    at_end->func = close_cursor;
    at_end->arg = psprintf("cursor %d", n);
    MemoryContextRegisterResetCallback(query, at_end);
    size_t bytes = 0;
    for (int i = 1; i <= 3; i++) {
        MemoryContextSwitchTo(row);
        char* text = psprintf("row %d of query %d", i, n);
        if (n == 2 && i == 2) ereport(ERROR, (errmsg("no such row")));
        if (n == 3 && i == 3) kept = MemoryContextStrdup(report, text);
        bytes += strlen(text);
        MemoryContextReset(row);
    }
    MemoryContextSwitchTo(report);
    MemoryContextDelete(query); /* and the row's below it */
    printf("query %d: %zu bytes\n", n, bytes);
}

Datum report(PG_FUNCTION_ARGS) {
    MemoryContext report = AllocSetContextCreate(CurrentMemoryContext, "report", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(report);
    (void)fcinfo;
    for (int n = 1; n <= 3; n++) {
        PG_TRY();
        {
            query(report, n);
        }
        PG_CATCH();
        {
            MemoryContextSwitchTo(report);
            FlushErrorState();
            MemoryContextDeleteChildren(report);
            printf("query %d failed\n", n);
        }
        PG_END_TRY();
    }
    printf("kept: %s\n", kept);
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(report);
    PG_RETURN_VOID();
}
