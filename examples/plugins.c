/*
 * plugins.c - a host and its plugins: a plugin's memory is a phase, which ends when the plugin is unloaded, whatever it forgot to free.
 *
 * Claim: after 100 plugins, each of which forgets every tenth of its objects, nothing of them is live, and the receipt of each says how much
 * it forgot. What a plugin gives to the host is made outside of its phase and stays. Beside it the same with malloc.
 *
 *     cc -O2 plugins.c $(pkg-config --cflags --libs temporal-slab) && ./a.out
 */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLUGINS = 100, CALLS = 50, OBJECTS = 40 };

static SlabAllocator* slab; /* NULL: malloc */
static unsigned long made, freed;

/* ---- what the host offers: plugins know nothing of phases ---- */

static void* host_malloc(size_t size) {
    void* p = slab != NULL ? slab_malloc(slab, size) : malloc(size);
    if (p == NULL) exit(3);
    made++;
    return p;
}

static void host_free(void* p) {
    if (slab != NULL) slab_free(slab, p);
    else free(p);
    freed++;
}

static char* host_result(const char* text) {
    char* p = slab != NULL ? slab_malloc_outside(slab, strlen(text) + 1) : malloc(strlen(text) + 1);
    if (p == NULL) exit(3);
    return strcpy(p, text);
}

/* ---- a plugin ---- */

static char* plugin_call(unsigned n) {
    char text[40];
    for (unsigned i = 0; i < OBJECTS; i++) {
        void* p = memset(host_malloc(30 + i * 7), 1, 30 + i * 7);
        if (i % 10 != 9) host_free(p); /* and forgets the others */
    }
    (void)snprintf(text, sizeof text, "result %u", n);
    return host_result(text);
}

/* ---- the host ---- */

static bool run(void) {
    bool told = true;
    made = freed = 0;
    for (unsigned n = 0; n < PLUGINS; n++) {
        epoch_domain_t* plugin = slab != NULL ? epoch_domain_create_labeled(slab, "plugin") : NULL;
        if (slab != NULL && plugin == NULL) exit(3);
        if (plugin != NULL) plugin->auto_close = false; /* it stays from call to call */
        char* result = NULL;
        for (unsigned call = 0; call < CALLS; call++) {
            if (slab != NULL) slab_free(slab, result);
            else free(result);
            if (plugin != NULL && !epoch_domain_enter(plugin)) exit(3);
            result = plugin_call(call);
            if (plugin != NULL && !epoch_domain_exit(plugin)) exit(3);
        }
        EpochReceipt r;
        if (plugin != NULL) { /* unloaded */
            told = told && epoch_domain_force_close(plugin) && epoch_domain_receipt(plugin, &r);
            told = told && r.objects_released == CALLS * OBJECTS / 10 && epoch_domain_destroy(plugin);
        }
        told = told && strcmp(result, "result 49") == 0; /* the host's own */
        if (slab != NULL) slab_free(slab, result);
        else free(result);
    }
    return told;
}

int main(void) {
    bool same = run();
    unsigned long forgotten = made - freed;
    if ((slab = slab_allocator_create()) == NULL) return puts(slab_last_error()), 3;
    bool told = run();
    SlabGlobalStats g;
    slab_stats_global(slab, &g);
    printf("%d plugins that forget every tenth object\n", PLUGINS);
    printf("phases  %llu objects are live after all were unloaded\n", (unsigned long long)g.live_objects);
    printf("malloc  %lu objects are, and stay\n", forgotten);
    bool holds = same && told && forgotten == PLUGINS * CALLS * OBJECTS / 10 && g.live_objects == 0;
    puts(holds ? "claim holds: what plugins forget ends with them, and receipts say how much it was" : "claim FAILS");
    slab_allocator_free(slab);
    return holds ? 0 : 1;
}
