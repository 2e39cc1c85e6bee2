/*
 * data.c - loads the files of iso-codes and indexes them. See data.h.
 */
#include "data.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *file, *root, *code;
} KINDS[DATA_KINDS] = {
    [DATA_COUNTRY] = {"country", "iso_3166-1.json", "3166-1", "alpha_2"},
    [DATA_SUBDIVISION] = {"subdivision", "iso_3166-2.json", "3166-2", "code"},
    [DATA_LANGUAGE] = {"language", "iso_639-3.json", "639-3", "alpha_3"},
    [DATA_CURRENCY] = {"currency", "iso_4217.json", "4217", "alpha_3"},
};

const char* data_kind_name(DataKind kind) { return KINDS[kind].name; }

DataKind data_kind_of(const char* name) {
    int kind = 0;
    while (kind < DATA_KINDS && strcmp(name, KINDS[kind].name) != 0) kind++;
    return (DataKind)kind;
}

const char* data_text(const cJSON* item, const char* member) {
    const char* text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, member));
    return text ? text : "";
}

const char* data_code(const DataRow* row) { return data_text(row->item, KINDS[row->kind].code); }

static void source_path(const char* dir, DataKind kind, char* out, size_t room) {
    snprintf(out, room, "%s/%s", dir, KINDS[kind].file);
}

bool data_present(const char* dir) {
    char path[4096];
    for (int k = 0; k < DATA_KINDS; k++) {
        source_path(dir, (DataKind)k, path, sizeof path);
        if (access(path, R_OK) == 0) continue;
        fprintf(stderr,
                "tslab_demo: cannot read %s\n"
                "The demo answers from the JSON files of the Debian package iso-codes. Install it with\n"
                "    apt install iso-codes\n"
                "or name the directory that holds %s with --data DIR.\n",
                path, KINDS[k].file);
        return false;
    }
    return true;
}

char* data_read_source(const Data* data, DataKind kind, size_t* len) {
    char path[4096];
    source_path(data->dir, kind, path, sizeof path);
    FILE* f = fopen(path, "rb");
    if (!f) return NULL;
    char* text = NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        long size = ftell(f);
        rewind(f);
        text = size > 0 ? backend_malloc((size_t)size + 1) : NULL;
        if (text && fread(text, 1, (size_t)size, f) != (size_t)size) {
            backend_free(text);
            text = NULL;
        }
        if (text) {
            text[size] = '\0';
            *len = (size_t)size;
        }
    }
    fclose(f);
    return text;
}

static int compare_rows(const void* left, const void* right) {
    const DataRow* a = left;
    const DataRow* b = right;
    int order = strcmp(a->key, b->key);
    if (order == 0) order = (int)a->kind - (int)b->kind;
    return order ? order : strcmp(data_code(a), data_code(b));
}

static bool index_codes(Data* data, DataKind kind) {
    const cJSON* list = cJSON_GetObjectItemCaseSensitive(data->tree[kind], KINDS[kind].root);
    size_t count = (size_t)cJSON_GetArraySize(list);
    DataRow* rows = count ? store_malloc(&data->store, count * sizeof *rows) : NULL;
    if (!rows) return false;
    size_t n = 0;
    const cJSON* item;
    cJSON_ArrayForEach(item, list) rows[n++] = (DataRow){data_text(item, KINDS[kind].code), item, kind};
    qsort(rows, n, sizeof *rows, compare_rows);
    data->by_code[kind] = (DataSpan){rows, n};
    return true;
}

/* Copies the words of all names to `text` and a row for each to `rows`; counts only when NULL. */
static size_t split_words(const Data* data, DataRow* rows, char* text, size_t* text_bytes) {
    size_t words = 0, used = 0;
    for (int k = 0; k < DATA_KINDS; k++) {
        for (size_t i = 0; i < data->by_code[k].count; i++) {
            const cJSON* item = data->by_code[k].rows[i].item;
            const char* at = data_text(item, "name");
            while (*(at += strspn(at, " ,()/"))) {
                size_t len = strcspn(at, " ,()/");
                if (rows) {
                    for (size_t c = 0; c < len; c++)
                        text[used + c] = (char)((unsigned char)at[c] < 128 ? tolower((unsigned char)at[c]) : at[c]);
                    text[used + len] = '\0';
                    rows[words] = (DataRow){text + used, item, (DataKind)k};
                }
                words++;
                used += len + 1;
                at += len;
            }
        }
    }
    *text_bytes = used;
    return words;
}

static bool index_words(Data* data) {
    size_t text_bytes;
    size_t count = split_words(data, NULL, NULL, &text_bytes);
    DataRow* rows = store_malloc(&data->store, count * sizeof *rows);
    data->words = (DataSpan){rows, count};
    data->word_text = store_malloc(&data->store, text_bytes);
    if (!rows || !data->word_text) return false;
    split_words(data, rows, data->word_text, &text_bytes);
    qsort(rows, count, sizeof *rows, compare_rows);
    return true;
}

bool data_load(Data* data, const char* dir) {
    memset(data, 0, sizeof *data);
    data->dir = dir;
    if (!store_open(&data->store, "reference data")) return false;
    store_enter(&data->store); /* cJSON allocates in the ambient domain */
    bool ok = true;
    for (int k = 0; ok && k < DATA_KINDS; k++) {
        size_t len = 0;
        char* text = data_read_source(data, (DataKind)k, &len);
        data->tree[k] = text ? cJSON_ParseWithLength(text, len) : NULL;
        backend_free(text);
        ok = data->tree[k] && index_codes(data, (DataKind)k);
        if (!ok) fprintf(stderr, "tslab_demo: %s/%s is not the JSON file of iso-codes\n", dir, KINDS[k].file);
    }
    ok = ok && index_words(data);
    store_exit(&data->store);
    return ok;
}

void data_unload(Data* data) {
    if (!backend_ends_in_bulk()) {
        for (int k = 0; k < DATA_KINDS; k++) {
            store_free((void*)data->by_code[k].rows);
            cJSON_Delete(data->tree[k]);
        }
        store_free((void*)data->words.rows);
        store_free(data->word_text);
    }
    store_close(&data->store);
}

DataSpan data_range(DataSpan span, const char* prefix) {
    size_t len = strlen(prefix);
    size_t low = 0, high = span.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strncmp(span.rows[mid].key, prefix, len) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    size_t first = low;
    high = span.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strncmp(span.rows[mid].key, prefix, len) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return (DataSpan){span.rows + first, low - first};
}
