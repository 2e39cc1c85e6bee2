/*
 * leak_gate.c - a test of a server that fails when a request leaves something behind: slab_gate.
 *
 * The server has a table of sessions, which grows and shrinks, and a cache of pages, so what it holds after a request is never 0,
 * and no test could say how much it should be. The gate asks something else: does a further round of the same requests
 * leave more than any round before? The handler of "/login" forgets the answer's header where a name is taken: a leak of
 * one object in a few requests, on a path of errors, which no counting of mallocs in one request shows.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_diagnostics.h>

enum { PAGES = 16, SESSIONS = 64, REQUESTS = 200 };

typedef struct Server {
    SlabAllocator* a;
    bool fixed;
    char* pages[PAGES];       /* the cache: by number, the last answer */
    char* sessions[SESSIONS]; /* by user; logging in twice is refused */
    unsigned served;
} Server;

/* An answer is made in the request's phase; the page it puts into the cache is not. */
static void page(Server* s, unsigned number) {
    char* text = slab_asprintf(s->a, "<h1>Page %u</h1> for the %uth time", number, s->served);
    slab_free(s->a, s->pages[number % PAGES]);
    s->pages[number % PAGES] = slab_strdup_outside(s->a, text);
    slab_free(s->a, text);
}

static void login(Server* s, unsigned user) {
    char* header = slab_strdup(s->a, "Content-Type: text/plain");
    if (s->sessions[user % SESSIONS] != NULL) {
        if (s->fixed) slab_free(s->a, header); /* "409 Conflict", and the header is forgotten */
        return;
    }
    s->sessions[user % SESSIONS] = slab_asprintf_outside(s->a, "session of user %u", user);
    slab_free(s->a, header);
}

static void logout(Server* s, unsigned user) {
    slab_free(s->a, s->sessions[user % SESSIONS]);
    s->sessions[user % SESSIONS] = NULL;
}

/* What the test calls a round: the same requests each time. */
static void requests(void* ctx) {
    Server* s = ctx;
    for (unsigned n = 0; n < REQUESTS; n++, s->served++) {
        unsigned which = n % 4, user = n * 7 % SESSIONS;
        epoch_domain_t* request = epoch_domain_begin(s->a, which == 0 ? "/login" : which == 3 ? "/logout" : "/page");
        if (which == 0) login(s, user);
        else if (which == 3) logout(s, n * 3 % SESSIONS);
        else page(s, n);
        (void)epoch_domain_drain(request, NULL);
    }
}

static bool test(bool fixed, char why[256]) {
    Server s = {.a = slab_allocator_create(), .fixed = fixed};
    bool passed = s.a != NULL && slab_gate(s.a, NULL, requests, &s, why, 256);
    slab_allocator_free(s.a);
    return passed;
}

int main(void) {
    char why[256];
    bool found = !test(false, why);
    printf("with the leak:     %s\n", found ? why : "passes");
    bool named = found && strncmp(why, "\"/login\" retains ", 17) == 0;
    bool passes = test(true, why);
    printf("without the leak:  %s\n", passes ? "no round leaves more than any before" : why);
    return named && passes ? 0 : 1;
}
