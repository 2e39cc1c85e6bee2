/*
 * server.c - a server of libmicrohttpd with libxml2, json-c, sqlite and libcurl, as anybody writes one: it knows nothing of
 * phases, nor of temporal-slab. GET /json, /xml, /sql, /curl, /std, /cache; GET /leak?... keeps a line when it was started with
 * an argument. It prints its port and serves until standard input ends.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <json-c/json.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <locale.h>
#include <microhttpd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if MHD_VERSION >= 0x00097002
typedef enum MHD_Result Result;
#else
typedef int Result;
#endif

static sqlite3* db;
static int port, leaks;
static unsigned long served;

static char* json(void) {
    struct json_object* o = json_tokener_parse("{\"name\": \"a thing\", \"parts\": [1, 2.5, \"three\", null, {\"deep\": true}]}");
    struct json_object* list = json_object_new_array();
    for (int i = 0; i < 40; i++) json_object_array_add(list, json_object_new_int(i * i));
    json_object_object_add(o, "squares", list);
    char* text = strdup(json_object_to_json_string(o));
    json_object_put(o);
    return text;
}

static char* xml(void) {
    static const char source[] = "<list><thing id='1'>one &amp; only</thing><thing id='2'><part/><part/></thing></list>";
    xmlDocPtr doc = xmlReadMemory(source, sizeof source - 1, "list.xml", NULL, 0);
    xmlNodePtr root = xmlDocGetRootElement(doc);
    for (int i = 0; i < 20; i++) xmlNewTextChild(root, NULL, BAD_CAST "thing", BAD_CAST "more");
    xmlChar* out = NULL;
    int length = 0;
    xmlDocDumpMemory(doc, &out, &length);
    char* text = strndup((char*)out, (size_t)length);
    xmlFree(out);
    xmlFreeDoc(doc);
    return text;
}

static int row(void* to, int columns, char** values, char** names) {
    char** text = to;
    char* longer = NULL;
    (void)columns, (void)names;
    if (asprintf(&longer, "%s%s\n", *text != NULL ? *text : "", values[0]) < 0) return 1;
    free(*text);
    *text = longer;
    return 0;
}
static char* sql(void) {
    char *text = NULL, *change = sqlite3_mprintf("insert into visits(at) values(%lu)", served);
    sqlite3_exec(db, change, NULL, NULL, NULL);
    sqlite3_free(change);
    sqlite3_exec(db, "select count(*) || ' of ' || max(at) from visits group by at % 7", row, &text, NULL);
    return text != NULL ? text : strdup("none");
}

static size_t take(char* bytes, size_t size, size_t n, void* to) {
    (void)bytes;
    *(size_t*)to += size * n;
    return size * n;
}
static char* fetches(void) {
    size_t got = 0;
    char* text = NULL;
    CURL* c = curl_easy_init();
    curl_easy_setopt(c, CURLOPT_URL, "file:///etc/passwd");
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &got);
    CURLcode code = curl_easy_perform(c);
    curl_easy_cleanup(c);
    if (asprintf(&text, "%s", code == CURLE_OK && got != 0 ? "fetched" : "not fetched") < 0) abort();
    return text;
}

static char* std(void) {
    char *text = NULL, day[64];
    time_t at = 86400 * 200;
    setlocale(LC_ALL, "C.UTF-8");
    strftime(day, sizeof day, "%A", localtime(&at));
    FILE* f = fopen("/etc/passwd", "r");
    size_t room = 0, lines = 0;
    char* line = NULL;
    while (f != NULL && getline(&line, &room, f) > 0) lines++;
    free(line);
    if (f != NULL) fclose(f);
    if (asprintf(&text, "%s, %s", day, lines != 0 ? "lines" : "none") < 0) abort();
    return text;
}

static char* cached[32];
static char* caches(void) {
    char** place = &cached[served % 32];
    free(*place);
    if (asprintf(place, "page %lu", served % 32) < 0) abort();
    return strdup(*place);
}

static void* leaked[1 << 16];
static char* leak(void) {
    static unsigned n;
    if (leaks) leaked[n++ % (1 << 16)] = strdup("a line that nobody frees");
    return strdup("leak");
}

static Result answer(void* ctx, struct MHD_Connection* c, const char* url, const char* method, const char* version,
                     const char* data, size_t* size, void** state) {
    static int seen;
    static const struct {
        const char* url;
        char* (*make)(void);
    } routes[] = {{"/json", json}, {"/xml", xml}, {"/sql", sql}, {"/curl", fetches}, {"/std", std}, {"/cache", caches}, {"/leak", leak}};
    (void)ctx, (void)version, (void)data, (void)size;
    if (*state == NULL) { /* the headers; again with the rest */
        *state = &seen;
        return MHD_YES;
    }
    *state = NULL;
    unsigned status = 404;
    char* text = NULL;
    for (size_t n = 0; n < sizeof routes / sizeof *routes && strcmp(method, "GET") == 0; n++)
        if (strcmp(url, routes[n].url) == 0) text = routes[n].make(), status = 200;
    served++;
    if (text == NULL) text = strdup("no such page");
    struct MHD_Response* r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(r, "Content-Type", "text/plain");
    Result done = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return done;
}

int main(int argc, char** argv) {
    (void)argv;
    leaks = argc > 1;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_exec(db, "create table visits(at integer)", NULL, NULL, NULL) != SQLITE_OK)
        return 1;
    struct MHD_Daemon* d = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, NULL, MHD_OPTION_END);
    if (d == NULL) return 1;
    port = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
    printf("%d\n", port);
    fflush(stdout);
    while (getchar() != EOF) {}
    MHD_stop_daemon(d);
    sqlite3_close(db);
    return 0;
}
