/* A connection with requests in pools of APR: a pool for each, a cleanup, a scratch pool that is cleared. */
#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

static apr_status_t close_upload(void* name) {
    printf("  closed %s\n", (char*)name);
    return APR_SUCCESS;
}

static void handle(apr_pool_t* connection, apr_pool_t* request, int i, const char** last) {
    char* upload = apr_psprintf(request, "upload-%d", i);
    apr_pool_cleanup_register(request, upload, close_upload, apr_pool_cleanup_null);
    char* title = apr_psprintf(request, "request %d", i);
    apr_pool_t* scratch; /* a child of the request: ends with it */
    if (apr_pool_create(&scratch, request) != APR_SUCCESS) return;
    size_t bytes = 0;
    for (int row = 0; row < 3; row++) {
        bytes += strlen(apr_psprintf(scratch, "row %d of %s", row, upload));
        apr_pool_clear(scratch);
    }
    printf("%s: %zu bytes\n", title, bytes);
    if (i == 2) *last = apr_pstrdup(connection, upload);
}

int main(void) {
    apr_pool_t *connection, *request;
    const char* last = "none";
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&connection, NULL) != APR_SUCCESS) return 3;
    if (apr_pool_create(&request, connection) != APR_SUCCESS) return 3;
    for (int i = 1; i <= 3; i++) {
        handle(connection, request, i, &last);
        apr_pool_clear(request);
    }
    printf("remembered: %s\n", last);
    apr_pool_destroy(connection);
    apr_terminate();
}
