/* use-after-end.c - the program of docs/sanitizers.md: a session is made in the phase of a request, and read after its end. */
#include <stdio.h>

#include <epoch_domain.h>

static char* make_session(epoch_domain_t* request) { return epoch_domain_strdup(request, "a session that should outlive the request"); }

static bool end_request(epoch_domain_t* request) { return epoch_domain_end(request); }

int main(void) {
    SlabAllocator* a = slab_allocator_create();
    epoch_domain_t* request = epoch_domain_begin(a, "GET /login");
    char* session = make_session(request);
    if (session == NULL || !end_request(request)) return 1;
    putchar(session[0]);
    slab_allocator_free(a);
}
