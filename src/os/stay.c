/* stay.c - see stay.h. */
#define _GNU_SOURCE
#include "os/stay.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Weak: a program that is linked statically as a whole has no loader. */
extern __typeof(dladdr) dladdr __attribute__((weak));
extern __typeof(dlsym) dlsym __attribute__((weak));
/* Dynamic section of the object that this code lies in, named by the linker. NULL if there is none. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden")));

#ifndef DF_1_NODELETE
#define DF_1_NODELETE 0x8
#endif

/* Returns true unless the object that this code lies in is a library that may be unloaded: true in a program, without a
 * dynamic section, and with -z nodelete. Linkers give DT_DEBUG to programs alone. [any thread, needs no lock] */
static bool stays_anyway(void) {
    const ElfW(Dyn)* entry = _DYNAMIC;
    if (entry == NULL) return true;
    for (; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_DEBUG || (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE) != 0))
            return true;
    return false;
}

void tsi_stay(void) {
    static const char here;
    void* (*open)(const char* name, int mode) = NULL;
    Dl_info object;
    bool has_loader = dladdr != NULL && dlsym != NULL;
    if (!has_loader || stays_anyway() || dladdr(&here, &object) == 0) return;

    /* Found by name: linkers warn of each mention of dlopen in a program that is linked statically. */
    *(void**)&open = dlsym(RTLD_DEFAULT, "dlopen");
    if (open == NULL) return;

    /* The name is the loader's own, so the object is found without looking at the file, which may have moved. The
     * handle is not kept: it counts one use more, and the flag keeps the object in any case. */
    (void)open(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
