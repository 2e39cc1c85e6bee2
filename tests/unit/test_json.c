/* test_json.c - the writer of the C programs: layouts to the letter, strings, numbers. */
#include "kit/inside.h"

#include "common/json.h"

#include <math.h>

static char said[1024];
static size_t length;

static bool keep(void* ctx, const char* bytes, size_t n) {
    REQUIRE_EQ(ctx, said);
    REQUIRE(length + n < sizeof said);
    memcpy(said + length, bytes, n);
    said[length += n] = 0;
    return true;
}

static struct json begin(unsigned lines, bool tight) {
    length = 0;
    return (struct json){.write = keep, .ctx = said, .lines = lines, .indent = 2, .tight = tight};
}

static void write_something(struct json* j) {
    json_object(j, NULL);
    json_count(j, "a", UINT64_MAX);
    json_array(j, "b");
    json_bool(j, NULL, true);
    json_object(j, NULL);
    json_close(j);
    json_bool(j, NULL, false);
    json_close(j);
    json_array(j, "c");
    json_close(j);
    json_text(j, "d", NULL);
    json_close(j);
}

static void layouts(void) {
    struct json j = begin(0, true);
    write_something(&j);
    REQUIRE_STR(said, "{\"a\":18446744073709551615,\"b\":[true,{},false],\"c\":[],\"d\":null}");
    j = begin(0, false);
    write_something(&j);
    REQUIRE_STR(said, "{\"a\": 18446744073709551615, \"b\": [true, {}, false], \"c\": [], \"d\": null}");
    j = begin(1, false);
    write_something(&j);
    REQUIRE_STR(said, "{\n  \"a\": 18446744073709551615,\n  \"b\": [true, {}, false],\n"
                      "  \"c\": [],\n  \"d\": null\n}");
    j = begin(JSON_DEPTH, false);
    write_something(&j);
    REQUIRE_STR(said, "{\n  \"a\": 18446744073709551615,\n  \"b\": [\n    true,\n    {},\n    false\n  ],\n"
                      "  \"c\": [],\n  \"d\": null\n}");
}

static void lines_by_hand(void) {
    struct json j = begin(0, false);
    json_array(&j, NULL);
    json_line(&j, 3);
    json_count(&j, NULL, 1);
    json_count(&j, NULL, 2);
    json_line(&j, 0);
    json_count(&j, NULL, 3);
    json_line(&j, 1);
    json_close(&j);
    REQUIRE_STR(said, "[\n   1, 2,\n3\n ]");
}

static const char* string_of(const char* text) {
    struct json j = begin(0, true);
    json_text(&j, NULL, text);
    return said;
}

static void strings(void) {
    REQUIRE_STR(string_of(""), "\"\"");
    REQUIRE_STR(string_of("a \"b\" \\ /"), "\"a \\\"b\\\" \\\\ /\"");
    REQUIRE_STR(string_of("\n\x1f\x7f"), "\"\\u000a\\u001f\x7f\"");
    REQUIRE_STR(string_of("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    static const char* const wrong[] = {"\x80",         "\xc0\xaf",     "\xc3",            "\xe2\x82",
                                        "\xed\xa0\x80", "\xe0\x80\x80", "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        string_of(wrong[i]);
        for (size_t k = 0; k < strlen(wrong[i]); k++) REQUIRE(memcmp(said + 1 + 3 * k, "\xef\xbf\xbd", 3) == 0);
        REQUIRE_EQ(length, 2 + 3 * strlen(wrong[i]));
    }
    struct json j = begin(0, true);
    json_object(&j, NULL);
    json_text(&j, "a\"", "b");
    json_close(&j);
    REQUIRE_STR(said, "{\"a\\\"\":\"b\"}");
}

static void numbers(void) {
    struct json j = begin(0, true);
    json_array(&j, NULL);
    json_fixed(&j, NULL, 2.0 / 3, 3);
    json_fixed(&j, NULL, -1e3, 0);
    json_fixed(&j, NULL, (double)NAN, 2);
    json_short(&j, NULL, 1e-7, 6);
    json_short(&j, NULL, 1234567, 15);
    json_short(&j, NULL, -(double)INFINITY, 6);
    json_close(&j);
    REQUIRE_STR(said, "[0.667,-1000,null,1e-07,1234567,null]");
    begin(0, true);
    json_fixed(&j, NULL, 1e308, 0);
    REQUIRE_EQ(length, 309);
}

static void to_a_file(void) {
    char* text = NULL;
    size_t size;
    FILE* f = open_memstream(&text, &size);
    struct json j = {.write = json_file, .ctx = f};
    REQUIRE(f != NULL);
    write_something(&j);
    fclose(f);
    REQUIRE_STR(text, "{\"a\": 18446744073709551615, \"b\": [true, {}, false], \"c\": [], \"d\": null}");
    free(text);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(layouts), CHECK_CASE(lines_by_hand), CHECK_CASE(strings), CHECK_CASE(numbers), CHECK_CASE(to_a_file),
    };
    return CHECK_RUN(argc, argv, tests);
}
