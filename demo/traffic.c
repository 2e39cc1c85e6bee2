/*
 * traffic.c - writes the requests. See traffic.h. Codes and search words come from the reference
 * data; one request in 64 asks for something that does not exist.
 */
#include "traffic.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const Route ROUTES[ROUTE_COUNT] = {
    [ROUTE_COUNTRY] = {"GET /country", "country", 366},
    [ROUTE_SEARCH] = {"GET /search", "search", 220},
    [ROUTE_LANGUAGES] = {"GET /languages/stats", "languages_stats", 100},
    [ROUTE_CONVERT] = {"GET /currency/convert", "convert", 90},
    [ROUTE_SESSION] = {"POST /session", "session", 220},
    [ROUTE_REPORT] = {"GET /report", "report", 4},
};

RouteId route_find(const char* line, size_t len) {
    int r = 0;
    while (r < ROUTE_COUNT && (strlen(ROUTES[r].label) != len || memcmp(ROUTES[r].label, line, len) != 0)) r++;
    return (RouteId)r;
}

/* splitmix64: state to next number. */
static uint64_t draw(uint64_t* state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned below(uint64_t* state, uint64_t limit) {
    return (unsigned)((draw(state) >> 32) * limit >> 32); /* limit < 2^32 */
}

static uint64_t start(const Traffic* traffic, uint64_t index) {
    uint64_t state = traffic->seed * 0xd1342543de82ef95u + index;
    return draw(&state);
}

static RouteId pick_route(uint64_t* state) {
    uint64_t ticket = below(state, 1000);
    int r = 0;
    while (ticket >= ROUTES[r].weight) ticket -= ROUTES[r++].weight;
    return (RouteId)r;
}

RouteId traffic_route(const Traffic* traffic, uint64_t index) {
    uint64_t state = start(traffic, index);
    return pick_route(&state);
}

typedef struct Text {
    char* out;
    size_t room, len;
} Text;

__attribute__((format(printf, 2, 3))) static void add(Text* text, const char* format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text->out + text->len, text->room - text->len, format, args);
    va_end(args);
    size_t most = text->room - 1 - text->len;
    text->len += n < 0 ? 0 : (size_t)n < most ? (size_t)n : most;
}

static const char* some_code(const Traffic* traffic, uint64_t* state, DataKind kind) {
    DataSpan span = traffic->data->by_code[kind];
    return data_code(&span.rows[below(state, span.count)]);
}

static void add_search(const Traffic* traffic, uint64_t* state, Text* text) {
    DataSpan words = traffic->data->words;
    const char* word = words.rows[below(state, words.count)].key;
    size_t letters = 0, wanted = 2 + below(state, 3);
    while (letters < wanted && (unsigned char)word[letters] < 128 && isalnum((unsigned char)word[letters])) letters++;
    add(text, "?q=%.*s", letters ? (int)letters : 2, letters ? word : "an");
    if (below(state, 4) == 0) add(text, "&kind=%s", data_kind_name((DataKind)below(state, DATA_KINDS)));
    add(text, "&limit=%u", 5 + 5 * below(state, 5));
}

static void add_event(const Traffic* traffic, uint64_t* state, Text* json) {
    static const char* const actions[] = {"view", "search", "buy", "share", "rate"};
    unsigned at = 1700000000u + below(state, 1u << 24);
    const char* action = actions[below(state, 5)];
    const char* country = some_code(traffic, state, DATA_COUNTRY);
    unsigned cents = below(state, 90000);
    add(json, "{\"at\":%u,\"action\":\"%s\",\"country\":\"%s\",\"amount\":%u.%02u}", at, action, country, cents / 100,
        cents % 100);
}

static void add_session_body(const Traffic* traffic, uint64_t* state, Text* text) {
    uint64_t r = below(state, 1u << 20);
    uint64_t user = ((r * r >> 20) * r >> 20) * traffic->users >> 20; /* cubed: low numbers come often */
    char body[TRAFFIC_TEXT_MAX - 512];
    Text json = {body, sizeof body, 0};
    const char* locale = some_code(traffic, state, DATA_LANGUAGE);
    add(&json, "{\"user\":\"u%06u\",\"locale\":\"%s\",\"events\":[", (unsigned)user, locale);
    unsigned events = 1 + below(state, 12);
    for (unsigned e = 0; e < events; e++) {
        add(&json, "%s", e ? "," : "");
        add_event(traffic, state, &json);
    }
    const char* currency = some_code(traffic, state, DATA_CURRENCY);
    const char* newsletter = below(state, 2) ? "true" : "false";
    add(&json, "],\"prefs\":{\"currency\":\"%s\",\"newsletter\":%s}}", currency, newsletter);
    add(text, " HTTP/1.1\r\nHost: demo\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", json.len,
        body);
}

static void add_convert(const Traffic* traffic, uint64_t* state, Text* text) {
    unsigned amount = 1 + below(state, 100000);
    add(text, "?amount=%u&from=%s&to=", amount, some_code(traffic, state, DATA_CURRENCY));
    unsigned targets = 3 + below(state, 20);
    for (unsigned t = 0; t < targets; t++) add(text, "%s%s", t ? "," : "", some_code(traffic, state, DATA_CURRENCY));
}

static void add_languages(uint64_t* state, bool absent, Text* text) {
    int letter = 'a' + (int)below(state, 26);
    add(text, "?prefix=%c&by=%s", absent ? '0' : letter, below(state, 2) ? "type" : "scope");
}

static void add_report(uint64_t* state, Text* text) {
    DataKind of = below(state, 2) ? DATA_LANGUAGE : DATA_SUBDIVISION;
    add(text, "?of=%s&top=%u", data_kind_name(of), 10 + below(state, 40));
}

size_t traffic_request(const Traffic* traffic, uint64_t index, char* out) {
    uint64_t state = start(traffic, index);
    RouteId route = pick_route(&state);
    bool absent = below(&state, 64) == 0;
    Text text = {out, TRAFFIC_TEXT_MAX, 0};
    add(&text, "%s", ROUTES[route].label);
    switch (route) {
    case ROUTE_COUNTRY:
        add(&text, "?code=%s", absent ? "XX" : some_code(traffic, &state, DATA_COUNTRY));
        break;
    case ROUTE_SEARCH:
        add_search(traffic, &state, &text);
        break;
    case ROUTE_LANGUAGES:
        add_languages(&state, absent, &text);
        break;
    case ROUTE_CONVERT:
        add_convert(traffic, &state, &text);
        break;
    case ROUTE_REPORT:
        add_report(&state, &text);
        break;
    case ROUTE_SESSION:
        add_session_body(traffic, &state, &text);
        return text.len;
    case ROUTE_COUNT:
        break;
    }
    add(&text, " HTTP/1.1\r\nHost: demo\r\nAccept: application/json\r\n\r\n");
    return text.len;
}
