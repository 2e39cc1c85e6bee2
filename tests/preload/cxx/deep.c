/* A library for RTLD_DEEPBIND: it says whose `which` it has got, by what it prints as it is used. */
#include <stdio.h>
#include <stdlib.h>

int which = 2;

void* made_here(void) {
    printf("which %d\n", which);
    return malloc(100);
}
void unmade_here(void* p) { free(p); }
