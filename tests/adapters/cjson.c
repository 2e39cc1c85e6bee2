/*
 * cjson.c - a large document parsed, copied, changed, compared and printed in phases: one is freed by hand, one just ends.
 */
#include <temporal_slab/cjson.h>

#include "adapters/adapter.h"

static const unsigned long adapter_least = 400000;

static const Text* document(void) { return adapter_file("/usr/share/iso-codes/json/iso_639-3.json"); }

static void adapter_install(SlabAllocator* a) { REQUIRE(tslab_cjson_init(a) == (a != NULL)); }
static void adapter_remove(SlabAllocator* a) {
    if (a != NULL) cJSON_InitHooks(NULL);
}

static cJSON* change(cJSON* tree) {
    cJSON* rows = cJSON_GetObjectItemCaseSensitive(tree, "639-3");
    REQUIRE(cJSON_GetArraySize(rows) > 7000);
    cJSON* short_rows = cJSON_CreateArray();
    for (int n = 0; n < 500; n++) {
        cJSON* row = cJSON_DetachItemFromArray(rows, 10);
        cJSON* name = cJSON_GetObjectItemCaseSensitive(row, "name");
        char longer[200];
        (void)snprintf(longer, sizeof longer, "%s, which is number %d of those that moved", name->valuestring, n);
        REQUIRE(cJSON_SetValuestring(name, longer) != NULL);
        REQUIRE(cJSON_AddNumberToObject(row, "number", n + n / 7.0) != NULL);
        if (n % 3 == 0) cJSON_DeleteItemFromObjectCaseSensitive(row, "scope");
        REQUIRE(cJSON_AddItemToArray(short_rows, row));
    }
    REQUIRE(cJSON_AddItemToObject(tree, "moved", short_rows));
    return rows;
}

/* Whether all is freed before the end: what is not ends with the phase. */
static void work(Text* out, bool frees) {
    cJSON* tree = cJSON_ParseWithLength(document()->bytes, document()->size);
    REQUIRE(tree != NULL);
    cJSON* copy = cJSON_Duplicate(tree, true);
    REQUIRE(copy != NULL && cJSON_Compare(tree, copy, true));
    (void)change(copy);
    REQUIRE(!cJSON_Compare(tree, copy, true));
    char* pretty = cJSON_Print(copy);
    char* plain = cJSON_PrintUnformatted(tree);
    char* buffered = cJSON_PrintBuffered(copy, 100, false);
    REQUIRE(pretty != NULL && plain != NULL && buffered != NULL);
    text_string(out, pretty);
    text_string(out, plain);
    text_string(out, buffered);
    cJSON* again = cJSON_Parse(pretty);
    REQUIRE(again != NULL && cJSON_Compare(again, copy, true));
    REQUIRE(cJSON_Parse("{\"open\": [1, 2, \"three") == NULL); /* what it had begun is freed */
    if (!frees) return;
    cJSON_free(pretty);
    cJSON_free(plain);
    cJSON_free(buffered);
    cJSON_Delete(tree);
    cJSON_Delete(copy);
    cJSON_Delete(again);
}

static void adapter_run(Text* out, SlabAllocator* a) {
    epoch_domain_t* session = adapter_create(a, "session");
    cJSON* kept = NULL;
    if (session != NULL) session->auto_close = false;
    for (int frees = 0; frees < 2; frees++) {
        epoch_domain_t* d = adapter_enter(a, "document");
        work(out, frees || a == NULL);
        cJSON* item = cJSON_Parse("{\"user\": [1, 2.5, \"name\", null, true]}");
        if (session != NULL) REQUIRE(epoch_domain_enter(session)); /* as the header says: what lives longer */
        kept = frees ? kept : cJSON_Duplicate(item, true);
        if (session != NULL) REQUIRE(epoch_domain_exit(session));
        if (frees || a == NULL) cJSON_Delete(item);
        EpochReceipt r = adapter_leave(d);
        if (d != NULL) REQUIRE(frees ? r.objects_released == 0 : r.objects_released > 200000);
    }
    char* text = cJSON_PrintUnformatted(kept);
    text_string(out, text);
    cJSON_free(text);
    cJSON_Delete(kept);
    if (session != NULL) REQUIRE(adapter_end(session).objects_allocated > 5);
}

static void adapter_starve(SlabAllocator* a) {
    unsigned parsed = 0, refused = 0;
    for (size_t budget = 64 << 10; budget <= 64 << 20; budget *= 4) {
        epoch_domain_t* d = adapter_enter(a, "hungry document");
        REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, budget, NULL, NULL));
        cJSON* tree = cJSON_ParseWithLength(document()->bytes, document()->size);
        char* text = tree != NULL ? cJSON_Print(tree) : NULL;
        if (text == NULL) refused++;
        else parsed++;
        cJSON_Delete(tree);
        cJSON_free(text);
        REQUIRE(adapter_leave(d).objects_released == 0); /* cJSON has freed what it had begun */
    }
    REQUIRE(refused >= 2 && parsed >= 1);
}
