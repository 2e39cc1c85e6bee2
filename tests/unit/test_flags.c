/* test_flags.c - the reader of command lines: every kind of value, what is refused and with which words, --help. */
#include "kit/inside.h"

#include "common/flags.h"

static struct values {
    bool on, off;
    uint64_t count, place, preset;
    unsigned few;
    double real;
    const char *text, *word;
    struct flag_file file;
    unsigned taken;
} v;

static bool take_word(void* to, const char* value) {
    struct values* values = to;
    values->taken++;
    return strcmp(value, "third") != 0 || flags_wrong("not the %s", value);
}

static void print_help(const struct command_line* c) {
    printf("head\n");
    flags_print(c, c->tables[0]);
    printf("tail\n");
}

static char out[2048], err[2048];

/* What a stream says while the line is read. */
static void read_back(FILE* f, int fd, int saved, char* to, size_t size) {
    fflush(fd == 1 ? stdout : stderr);
    REQUIRE(dup2(saved, fd) == fd);
    close(saved);
    rewind(f);
    to[fread(to, 1, size - 1, f)] = 0;
    fclose(f);
}

static const char long_help[] = "a sentence that is too long for the hundred columns of a page beside its flag, "
                                "which is on the left";
static struct flag first[12];
static const char* seen; /* flags_value of --text */

static char* called_as = "prog"; /* argv[0] */

static int read_line(const char* version, const char* const* words) {
    const struct flag table[] = {
        {.name = "--on", .kind = FLAG_SWITCH, .to = &v.on, .help = "switches"},
        {.name = "--off", .kind = FLAG_CLEAR, .to = &v.off, .help = ""},
        {.name = "--a_count", .kind = FLAG_COUNT, .to = &v.count, .least = 2, .most = 1e6, .help = "counts"},
        {.name = "--any", .kind = FLAG_COUNT, .to = &v.count, .help = NULL},
        {.name = "--few", .kind = FLAG_UNSIGNED, .to = &v.few, .least = 1, .most = 99, .argument = "F", .help = "few"},
        {.name = "--real", .kind = FLAG_REAL, .to = &v.real, .least = 0.5, .most = 10, .help = long_help},
        {.name = "--word", .kind = FLAG_WORD, .to = &v.word, .words = FLAG_WORDS("first", "second"), .help = "one"},
        {.name = "--each", .kind = FLAG_WORD, .take = take_word, .to = &v, .words = FLAG_WORDS("first", "third"),
         .argument = "EACH", .help = "some"},
        {.name = "--preset", .kind = FLAG_COUNT, .to = &v.preset, .preset = 7, .quick = 3, .help = "preset"},
        {.name = "--file", .kind = FLAG_FILE, .to = &v.file, .help = "output"},
        {.name = "PLACE", .kind = FLAG_COUNT, .to = &v.place, .most = 9, .help = "a place"},
        {.name = NULL}};
    struct flag second[] = {{.name = "--text", .kind = FLAG_TEXT, .to = &v.text, .argument = "T", .help = "text"},
                            {.name = NULL}};
    struct command_line c = {.program = "prog", .version = version, .help = print_help, .column = 20, .between = ' ',
                             .tables = {first, second}, .argv = (char*[12]){called_as}, .argc = 1};
    memcpy(first, table, sizeof table);
    for (; *words; words++) c.argv[c.argc++] = (char*)(uintptr_t)*words;
    v = (struct values){.off = true};
    fflush(stdout);
    FILE *to_out = tmpfile(), *to_err = tmpfile();
    REQUIRE(to_out && to_err);
    int saved_out = dup(1), saved_err = dup(2);
    dup2(fileno(to_out), 1);
    dup2(fileno(to_err), 2);
    seen = flags_value(&c, "--text");
    int status = flags_read(&c);
    read_back(to_out, 1, saved_out, out, sizeof out);
    read_back(to_err, 2, saved_err, err, sizeof err);
    return status;
}

#define READ(...) read_line("1.2", (const char* const[]){__VA_ARGS__, NULL})
#define GOOD(...) REQUIRE_EQ(READ(__VA_ARGS__), -1), REQUIRE_STR(err, ""), REQUIRE_STR(out, "")
#define WRONG(said, ...)                  \
    REQUIRE_EQ(READ(__VA_ARGS__), 2);     \
    REQUIRE_STR(err, "prog: " said "\n"); \
    REQUIRE_STR(out, "")

static void values_are_stored(void) {
    GOOD("--on", "--off");
    REQUIRE(v.on && !v.off && first[0].given && !first[2].given);
    GOOD("--a_count=2", "--real", "0.5", "--few=99", "--word=second", "--text", "-t=1", "5");
    REQUIRE(v.count == 2 && v.real == 0.5 && v.few == 99 && v.place == 5 && !v.on && v.off && v.preset == 7);
    REQUIRE_STR(v.word, "second");
    REQUIRE_STR(v.text, "-t=1");
    GOOD("--a-count", "1000000", "--a_count=3", "--preset=8");
    REQUIRE(v.count == 3 && v.preset == 8);
    GOOD("--any=18446744073709551615", "--text=a", "--text=b");
    REQUIRE(v.count == UINT64_MAX);
    REQUIRE_STR(seen, "b");
    GOOD("--each=first", "--each", "first");
    REQUIRE_EQ(v.taken, 2);
    REQUIRE_NULL(seen);
}

static void files_may_be_left_out(void) {
    GOOD("--file");
    REQUIRE(v.file.asked && v.file.path == NULL);
    GOOD("--file", "--on");
    REQUIRE(v.file.path == NULL && v.on);
    GOOD("--file", "3");
    REQUIRE(v.file.path == NULL && v.place == 3);
    GOOD("--file", "3.json");
    REQUIRE_STR(v.file.path, "3.json");
    GOOD("--file=3");
    REQUIRE_STR(v.file.path, "3");
}

static void wrong_flags(void) {
    WRONG("'--no' is not a flag; did you mean --on?", "--no");
    WRONG("'--a_conut=3' is not a flag; did you mean --a_count?", "--a_conut=3");
    WRONG("'--of' is not a flag; did you mean --on?", "--of"); /* a name is not shortened */
    WRONG("'--hepl' is not a flag; did you mean --help?", "--hepl");
    WRONG("'--ayn-such-flag' is not a flag; see prog --help", "--ayn-such-flag");
    WRONG("'stray' is not a flag; see prog --help", "1", "stray");
    WRONG("'-' is not a flag; see prog --help", "-");
    WRONG("--on takes no value", "--on=1");
    WRONG("--text needs a value: --text T", "--text");
    WRONG("--few needs a value: --few F", "--few=");
    WRONG("--a_count needs a value: --a_count N", "--a_count", "");
    REQUIRE_EQ(read_line(NULL, (const char* const[]){"--version", NULL}), 2);
}

static void wrong_values(void) {
    static const char* const wrong[] = {"1",    "1000001", "-2",  "+2",                   " 2", "2.5",
                                        "0x10", "2e3",     "2 ", "99999999999999999999", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "prog: --a_count takes a whole number from 2 to 1000000, not '%s'\n", wrong[i]);
        REQUIRE_EQ(READ("--a_count", wrong[i]), 2);
        REQUIRE_STR(err, wanted);
    }
    WRONG("--any takes a whole number, not '18446744073709551616'", "--any=18446744073709551616");
    WRONG("--real takes a number from 0.5 to 10, not '0.4'", "--real=0.4");
    WRONG("--real takes a number from 0.5 to 10, not '10.5'", "--real=10.5");
    WRONG("--real takes a number from 0.5 to 10, not '1e0'", "--real=1e0");
    WRONG("--real takes a number from 0.5 to 10, not '1.2.3'", "--real=1.2.3");
    WRONG("--real takes a number from 0.5 to 10, not '.'", "--real=.");
    WRONG("--few takes a whole number from 1 to 99, not '0'", "--few", "0");
    WRONG("PLACE takes a whole number from 0 to 9, not '10'", "10");
    WRONG("--word takes first|second, not 'frist'; did you mean first?", "--word", "frist");
    WRONG("--word takes first|second, not 'seventh'", "--word", "seventh");
    WRONG("not the third", "--each=third");
}

static void help_and_version(void) {
    REQUIRE_EQ(READ("--version", "--no"), 0);
    REQUIRE_STR(out, "prog 1.2\n");
    for (int n = 0; n < 2; n++) {
        REQUIRE_EQ(READ("--on", n ? "-h" : "--help", "--nonsense"), 0);
        REQUIRE_STR(err, "");
        REQUIRE_STR(out, "head\n"
                         "  --on              switches\n"
                         "  --a_count N       counts\n"
                         "  --few F           few\n"
                         "  --real N          a sentence that is too long for the hundred columns of a page "
                         "beside its flag,\n"
                         "                    which is on the left\n"
                         "  --word WORD       one: first|second\n"
                         "  --each EACH       some\n"
                         "  --preset N        preset (default 7, quick 3)\n"
                         "  --file[=FILE]     output\n"
                         "  PLACE             a place\n"
                         "tail\n");
    }
}

static void installed_names(void) {
    called_as = "/usr/bin/tslab-prog";
    REQUIRE_EQ(READ("--version"), 0);
    REQUIRE_STR(out, "tslab-prog 1.2\n");
    REQUIRE_EQ(READ("--quite-another-flag"), 2);
    REQUIRE_STR(err, "tslab-prog: '--quite-another-flag' is not a flag; see tslab-prog --help\n");
    called_as = "./lt-prog"; /* any other name is a detail of how it was started */
    REQUIRE_EQ(READ("--version"), 0);
    REQUIRE_STR(out, "prog 1.2\n");
    called_as = "prog";
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(values_are_stored), CHECK_CASE(files_may_be_left_out), CHECK_CASE(wrong_flags),
        CHECK_CASE(wrong_values),      CHECK_CASE(help_and_version),
        CHECK_CASE(installed_names),
    };
    return CHECK_RUN(argc, argv, tests);
}
