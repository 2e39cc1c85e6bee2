/*
 * The calls that the patches use, on malloc, for AddressSanitizer: linked in place of the library, with a program that
 * is built with -fsanitize=address. The end of a phase frees what is live in it, one by one; so whatever is used or
 * freed after its phase has ended is reported as a use after free, with the stacks of the use, of the allocation and of
 * the end. The library itself sees late frees, and no late uses.
 *
 *     object = [ place in the phase's list | what the program has ]
 *
 * One lock for everything, nothing is fast. A scope is a phase on the thread's stack; the outermost is the program's.
 */
#include <epoch_domain.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct Object {
    struct Object *next, *previous; /* a ring, whose head is in the phase */
    struct Phase* phase;
    size_t size;
} __attribute__((aligned(16))) Object;

typedef struct Phase {
    epoch_domain_t domain; /* first: a domain is its phase */
    Object live;
    struct Phase *around, *next; /* the scope around it; the phase begun before */
    struct Phase* is;            /* itself, or the program's, which it borrows */
} Phase;

static SlabAllocator heap;
static Phase program = {.domain = {.alloc = &heap}, .live = {&program.live, &program.live, &program, 0}, .is = &program};
static Phase* phases = &program; /* by id, the newest first */
static EpochId last_id;
static __thread Phase* innermost;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

SlabAllocator* slab_allocator_create(void) { return &heap; }

static Object* object_of(void* p) { return (Object*)p - 1; }

static void* make(Phase* phase, size_t size) {
    Object* o = size == 0 ? NULL : malloc(sizeof *o + size);
    if (o == NULL) return NULL;
    pthread_mutex_lock(&lock);
    *o = (Object){phase->live.next, &phase->live, phase, size};
    o->next->previous = o->previous->next = o;
    pthread_mutex_unlock(&lock);
    return o + 1;
}

static Phase* here(void) { return innermost != NULL ? innermost->is : &program; }

void* slab_malloc(SlabAllocator* a, size_t size) { return (void)a, make(here(), size); }
void* slab_malloc_outside(SlabAllocator* a, size_t size) { return (void)a, make(&program, size); }

void* slab_calloc(SlabAllocator* a, size_t n, size_t size) {
    void* p = size != 0 && n > SIZE_MAX / 2 / size ? NULL : slab_malloc(a, n * size);
    return p != NULL ? memset(p, 0, n * size) : NULL;
}

char* slab_strdup(SlabAllocator* a, const char* text) {
    char* p = slab_malloc(a, strlen(text) + 1);
    return p != NULL ? strcpy(p, text) : NULL;
}

static void end_object(Object* o) {
    o->next->previous = o->previous, o->previous->next = o->next;
    free(o);
}

void slab_free(SlabAllocator* a, void* p) {
    (void)a;
    if (p == NULL) return;
    pthread_mutex_lock(&lock);
    end_object(object_of(p));
    pthread_mutex_unlock(&lock);
}

static void* resize(void* p, size_t size, Phase* phase) {
    void* to = make(phase, size);
    if (p == NULL || to == NULL) return to;
    memcpy(to, p, size < object_of(p)->size ? size : object_of(p)->size);
    slab_free(&heap, p);
    return to;
}

void* slab_realloc(SlabAllocator* a, void* p, size_t size) {
    return (void)a, resize(p, size, p != NULL ? object_of(p)->phase : here());
}

void* slab_realloc_epoch(SlabAllocator* a, void* p, size_t size, EpochId epoch) {
    pthread_mutex_lock(&lock);
    Phase* phase = phases;
    while (phase != NULL && phase->domain.epoch_id != epoch) phase = phase->next;
    pthread_mutex_unlock(&lock);
    return (void)a, phase != NULL ? resize(p, size, phase) : NULL;
}

bool slab_ptr_epoch(SlabAllocator* a, const void* p, EpochId* id, uint64_t* era) {
    (void)a;
    *id = ((const Object*)p - 1)->phase->domain.epoch_id;
    if (era != NULL) *era = *id;
    return true;
}

static epoch_domain_t* make_phase(bool borrowed) {
    Phase* d = calloc(1, sizeof *d);
    if (d == NULL) return NULL;
    d->is = borrowed ? &program : d;
    d->domain.alloc = &heap;
    d->live = (Object){&d->live, &d->live, d, 0};
    pthread_mutex_lock(&lock);
    if (!borrowed) d->domain.epoch_id = ++last_id;
    d->next = phases->next, phases->next = d; /* the program's stays first */
    pthread_mutex_unlock(&lock);
    return &d->domain;
}

epoch_domain_t* epoch_domain_wrap(SlabAllocator* a, EpochId epoch, bool auto_close) {
    return (void)a, (void)auto_close, epoch == 0 ? make_phase(true) : NULL;
}

bool epoch_domain_enter(epoch_domain_t* domain) {
    Phase* d = (Phase*)domain;
    if (d->around != NULL || d == innermost) abort(); /* entered twice: more than this needs */
    d->around = innermost;
    innermost = d;
    return true;
}

bool epoch_domain_exit(epoch_domain_t* domain) {
    Phase* d = (Phase*)domain;
    if (innermost != d) abort();
    innermost = d->around;
    d->around = NULL;
    return true;
}

epoch_domain_t* epoch_domain_begin(SlabAllocator* a, const char* label) {
    epoch_domain_t* domain = make_phase(false);
    (void)a, (void)label;
    if (domain != NULL) epoch_domain_enter(domain);
    return domain;
}

bool epoch_domain_reset(epoch_domain_t* domain) {
    Phase* d = (Phase*)domain;
    pthread_mutex_lock(&lock);
    while (d->live.next != &d->live) end_object(d->live.next);
    pthread_mutex_unlock(&lock);
    return true;
}

bool epoch_domain_end(epoch_domain_t* domain) {
    epoch_domain_exit(domain);
    epoch_domain_reset(domain);
    pthread_mutex_lock(&lock);
    Phase* before = phases;
    while (before->next != (Phase*)domain) before = before->next;
    before->next = before->next->next;
    pthread_mutex_unlock(&lock);
    free(domain);
    return true;
}
