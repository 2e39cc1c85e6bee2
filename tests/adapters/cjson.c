/*
 * cjson.c - a large document parsed, copied, changed, compared and printed in phases: one is freed by hand, one just ends.
 */
#include <temporal_slab/cjson.h>

#include "adapters/kit.h"

static const unsigned long kit_least = 400000;

static const Text* document(void) { return kit_file("/usr/share/iso-codes/json/iso_639-3.json"); }

static void kit_install(SlabAllocator* a) { CHECK(tslab_cjson_init(a) == (a != NULL)); }
static void kit_remove(SlabAllocator* a) { if (a != NULL) cJSON_InitHooks(NULL); }

static cJSON* change(cJSON* tree) {
    cJSON* rows = cJSON_GetObjectItemCaseSensitive(tree, "639-3");
    CHECK(cJSON_GetArraySize(rows) > 7000);
    cJSON* short_rows = cJSON_CreateArray();
    for (int n = 0; n < 500; n++) {
        cJSON* row = cJSON_DetachItemFromArray(rows, 10);
        cJSON* name = cJSON_GetObjectItemCaseSensitive(row, "name");
        char longer[200];
        (void)snprintf(longer, sizeof longer, "%s, which is number %d of those that moved", name->valuestring, n);
        CHECK(cJSON_SetValuestring(name, longer) != NULL);
        CHECK(cJSON_AddNumberToObject(row, "number", n + n / 7.0) != NULL);
        if (n % 3 == 0) cJSON_DeleteItemFromObjectCaseSensitive(row, "scope");
        CHECK(cJSON_AddItemToArray(short_rows, row));
    }
    CHECK(cJSON_AddItemToObject(tree, "moved", short_rows));
    return rows;
}

/* Whether all is freed before the end: what is not ends with the phase. */
static void work(Text* out, bool frees) {
    cJSON* tree = cJSON_ParseWithLength(document()->bytes, document()->size);
    CHECK(tree != NULL);
    cJSON* copy = cJSON_Duplicate(tree, true);
    CHECK(copy != NULL && cJSON_Compare(tree, copy, true));
    (void)change(copy);
    CHECK(!cJSON_Compare(tree, copy, true));
    char* pretty = cJSON_Print(copy);
    char* plain = cJSON_PrintUnformatted(tree);
    char* buffered = cJSON_PrintBuffered(copy, 100, false);
    CHECK(pretty != NULL && plain != NULL && buffered != NULL);
    text_string(out, pretty);
    text_string(out, plain);
    text_string(out, buffered);
    cJSON* again = cJSON_Parse(pretty);
    CHECK(again != NULL && cJSON_Compare(again, copy, true));
    CHECK(cJSON_Parse("{\"open\": [1, 2, \"three") == NULL); /* what it had begun is freed */
    if (!frees) return;
    cJSON_free(pretty);
    cJSON_free(plain);
    cJSON_free(buffered);
    cJSON_Delete(tree);
    cJSON_Delete(copy);
    cJSON_Delete(again);
}

static void kit_run(Text* out, SlabAllocator* a) {
    epoch_domain_t* session = kit_create(a, "session");
    cJSON* kept = NULL;
    if (session != NULL) session->auto_close = false;
    for (int frees = 0; frees < 2; frees++) {
        epoch_domain_t* d = kit_enter(a, "document");
        work(out, frees || a == NULL);
        cJSON* item = cJSON_Parse("{\"user\": [1, 2.5, \"name\", null, true]}");
        if (session != NULL) CHECK(epoch_domain_enter(session)); /* as the header says: what lives longer */
        kept = frees ? kept : cJSON_Duplicate(item, true);
        if (session != NULL) CHECK(epoch_domain_exit(session));
        if (frees || a == NULL) cJSON_Delete(item);
        EpochReceipt r = kit_leave(d);
        if (d != NULL) CHECK(frees ? r.objects_released == 0 : r.objects_released > 200000);
    }
    char* text = cJSON_PrintUnformatted(kept);
    text_string(out, text);
    cJSON_free(text);
    cJSON_Delete(kept);
    if (session != NULL) CHECK(kit_end(session).objects_allocated > 5);
}

static void kit_starve(SlabAllocator* a) {
    unsigned parsed = 0, refused = 0;
    for (size_t budget = 64 << 10; budget <= 64 << 20; budget *= 4) {
        epoch_domain_t* d = kit_enter(a, "hungry document");
        CHECK(slab_epoch_set_budget(a, d->epoch_id, 0, budget, NULL, NULL));
        cJSON* tree = cJSON_ParseWithLength(document()->bytes, document()->size);
        char* text = tree != NULL ? cJSON_Print(tree) : NULL;
        if (text == NULL) refused++;
        else parsed++;
        cJSON_Delete(tree);
        cJSON_free(text);
        CHECK(kit_leave(d).objects_released == 0); /* cJSON has freed what it had begun */
    }
    CHECK(refused >= 2 && parsed >= 1);
}
