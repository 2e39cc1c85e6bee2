/* Doubles as text: read back exactly, no longer than needed, with a point in every locale. */
#include "kit/inside.h"

#include "stats/decimal.h"

#include <float.h>
#include <locale.h>
#include <math.h>

static const char* text_of(double v) {
    static char text[TSI_DECIMAL_BYTES + 1];
    memset(text, 'x', sizeof text);
    size_t n = tsi_decimal_write(text, v);
    REQUIRE_BETWEEN(n, 1, TSI_DECIMAL_BYTES);
    text[n] = 0;
    return text;
}

static void known_numbers(void) {
    static const struct {
        double v;
        const char* text;
    } known[] = {
        {0.0, "0"},
        {-0.0, "0"},
        {1.0, "1"},
        {-1.0, "-1"},
        {0.1, "0.1"},
        {0.30000000000000004, "0.30000000000000004"},
        {100.0, "100"},
        {123456.789, "123456.789"},
        {-2.5, "-2.5"},
        {1e16, "10000000000000000"},
        {1e17, "1e17"},
        {12e17, "1.2e18"},
        {0.001, "0.001"},
        {0.000001, "0.000001"},
        {0.0000001, "1e-7"},
        {1e22, "1e22"},
        {1e23, "1e23"},
        {9007199254740993.0, "9007199254740992"},
        {DBL_MAX, "1.7976931348623157e308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {5e-324, "5e-324"},
        {-5e-324, "-5e-324"},
        {1.0 / 3.0, "0.3333333333333333"},
        {33.3, "33.3"},
        {9.5, "9.5"},
        {99.99, "99.99"},
        {NAN, "0"},
        {INFINITY, "0"},
        {-INFINITY, "0"},
    };
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) REQUIRE_STR(text_of(known[i].v), known[i].text);
}

/* Digits of a number without zeros around them. */
static int significant(const char* text) {
    int n = 0, zeros = 0;
    for (; *text != 0 && *text != 'e'; text++) {
        if (*text < '0' || *text > '9') continue;
        if (*text == '0' && n == 0) continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        n++;
    }
    return n - zeros;
}

static void reads_back(double v) {
    const char* text = text_of(v);
    char* end;
    char wide[64];
    double back = strtod(text, &end);
    REQUIRE_EQ(*end, 0);
    REQUIRE(memcmp(&back, &v, sizeof v) == 0);
    if (significant(text) <= 1) return;
    (void)snprintf(wide, sizeof wide, "%.*e", significant(text) - 2, v); /* one digit fewer */
    REQUIRE(strtod(wide, NULL) != v);
}

static void all_kinds_read_back(void) {
    uint64_t seed = 88172645463325252u;
    for (int e = -1074; e < 1024; e++) {
        double v = ldexp(1.0, e);
        reads_back(v);
        reads_back(nextafter(v, INFINITY));
        if (e > -1074) reads_back(-nextafter(v, 0));
    }
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t word;
        double v;
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        word = i % 3 == 0 ? seed & 0x800fffffffffffffu : seed; /* the small ones, too */
        memcpy(&v, &word, sizeof v);
        if (isfinite(v) && v != 0) reads_back(v);
        reads_back((double)(seed >> 40) / 100.0 + 0.01);
    }
}

static void locales_change_nothing(void) {
    static const char* const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (setlocale(LC_ALL, names[i]) == NULL) continue;
        REQUIRE_STR(text_of(1.5), "1.5");
        REQUIRE_STR(text_of(1.25e-30), "1.25e-30");
    }
    setlocale(LC_ALL, "C");
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(known_numbers),
        CHECK_CASE(all_kinds_read_back),
        CHECK_CASE(locales_change_nothing),
    };
    return CHECK_RUN(argc, argv, tests);
}
