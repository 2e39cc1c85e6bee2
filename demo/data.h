/*
 * data.h - the reference data: countries, subdivisions, languages and currencies of Debian's
 * iso-codes, parsed once with cJSON into a store, and sorted indexes over the parsed trees.
 *
 * Read-only after data_load, so any thread may look things up without a lock. An index is a sorted
 * array of (key, item); every question is a range of keys with a common prefix:
 *   countries by alpha-2, subdivisions by code ("DE-BY": the country is a prefix), languages by
 *   alpha-3, currencies by alpha-3, and the words of all their names in lower case.
 */
#ifndef DEMO_DATA_H
#define DEMO_DATA_H

#include "backend.h"

#include <cJSON.h>

typedef enum DataKind { DATA_COUNTRY, DATA_SUBDIVISION, DATA_LANGUAGE, DATA_CURRENCY, DATA_KINDS } DataKind;

typedef struct DataRow {
    const char* key;
    const cJSON* item;
    DataKind kind;
} DataRow;

typedef struct DataSpan {
    const DataRow* rows;
    size_t count;
} DataSpan;

typedef struct Data {
    Store store;
    const char* dir;
    cJSON* tree[DATA_KINDS];
    DataSpan by_code[DATA_KINDS];
    DataSpan words;
    char* word_text; /* the keys of `words` */
} Data;

/* Name of a kind in requests and answers ("country", ...). */
const char* data_kind_name(DataKind kind);
/* Kind of such a name; DATA_KINDS when there is none. */
DataKind data_kind_of(const char* name);
/* The code that names an item ("DE", "DE-BY", "deu", "EUR"). */
const char* data_code(const DataRow* row);
/* Value of a text member, "" when it has none. */
const char* data_text(const cJSON* item, const char* member);

/* True when every file is readable in `dir`; otherwise says on stderr what is missing. */
bool data_present(const char* dir);
bool data_load(Data* data, const char* dir);
void data_unload(Data* data);
/* Rows of a sorted span whose keys begin with `prefix`. */
DataSpan data_range(DataSpan span, const char* prefix);
/* Text of a kind's source file, read from disk into the caller's phase; backend_free frees it. */
char* data_read_source(const Data* data, DataKind kind, size_t* len);

#endif
