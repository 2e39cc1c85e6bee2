/* Opens the library of each path that it is given, with the flags that the first word names, and uses it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int which = 1; /* deep.c has one of the same name */

int main(int argc, char** argv) {
    int flags = RTLD_NOW | (strcmp(argv[1], "deep") == 0 ? RTLD_DEEPBIND : 0);
    for (int i = 2; i < argc; i++) {
        void* library = dlopen(argv[i], flags);
        if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
        void* (*made_here)(void);
        void (*unmade_here)(void*);
        const char* (*all_of_it)(void);
        *(void**)&made_here = dlsym(library, "made_here");
        *(void**)&unmade_here = dlsym(library, "unmade_here");
        *(void**)&all_of_it = dlsym(library, "all_of_it");
        char* p = made_here();
        p = realloc(p, 5000); /* made there, freed here, and the other way round */
        memset(p, 1, 5000);
        free(p);
        unmade_here(malloc(200));
        if (all_of_it == NULL) continue;
        const char* wrong = all_of_it();
        if (wrong[0] != 0) return fprintf(stderr, "%s\n", wrong), 1;
        if (dlclose(library) != 0) return 1;
    }
    puts("done");
    return 0;
}
