/*
 * owner.c - a process that shows its statistics and its heap profile until its standard input ends. With the argument "folder" it is on
 * a system without memfds, where both lie in a folder of its user.
 */
#include "os/os.h"

#include "epoch_domain.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static int no_memfd(const char* name) {
    (void)name;
    errno = ENOSYS;
    return -1;
}

int main(int argc, char** argv) {
    SlabOptions o = {.struct_size = sizeof o, .segment = 1, .profile_bytes = 512};
    struct pollfd input = {.fd = 0, .events = POLLIN};
    (void)slab_page_size(); /* the table is filled */
    if (argc > 1 && strcmp(argv[1], "folder") == 0) tsi_os.memfd = no_memfd;
    SlabAllocator* a = slab_allocator_create_with(&o);
    if (a == NULL || epoch_domain_begin(a, "owned") == NULL) return 1;
    for (unsigned n = 0; n < 1000; n++)
        if (slab_malloc(a, 100) == NULL) return 1;
    while (poll(&input, 1, 20) == 0) slab_trim(a);
    return 0;
}
