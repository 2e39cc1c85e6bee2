/*
 * main.c - tslab_demo: a request server on Lua and cJSON, measured on glibc malloc and on
 * temporal-slab.
 *
 *   options.c   flags                          backend.c   the two allocators, phases, stores
 *   compare.c   parent: runs, checks answers   data.c      reference data and its indexes
 *   report*.c   parent: prints                 sessions.c  LRU session cache
 *   output.c    parent: --json, --figures      traffic.c   requests out of a seed
 *   figures.c   parent: reads and shows them   serve.c     one request, bindings.c json.c its Lua side
 *   run.c       child: workers, measurement    leak.c      the fault of --leak
 *   accounts.c  child: what the library says   result.c    child: figures as JSON
 */
#include "compare.h"
#include "data.h"
#include "options.h"
#include "output.h"
#include "run.h"

int main(int argc, char** argv) {
    Options options;
    output_init();
    int status = options_read(argc, argv, &options);
    if (status >= 0) return status;
    if (!data_present(options.data_dir)) return 1;
    return options.backend ? run_backend(&options) : compare_backends(&options);
}
