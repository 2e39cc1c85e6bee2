/*
 * host.c - a program that knows nothing of the library: loads the plugin of its argument, has a thread use it, unloads it, and
 * only then lets the thread end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static int (*use)(void);
static atomic_int step;

static void await(int value) {
    while (atomic_load(&step) != value) usleep(1000);
}

static void* worker(void* arg) {
    int worked = use();
    atomic_store(&step, 1);
    await(2);
    return worked ? arg : NULL;
}

int main(int argc, char** argv) {
    pthread_t t;
    void* worked = NULL;
    void* plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (plugin == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
    use = (int (*)(void))dlsym(plugin, "plugin_use");
    if (use == NULL || pthread_create(&t, NULL, worker, &step) != 0) return 3;
    await(1);
    if (dlclose(plugin) != 0) return 4;
    atomic_store(&step, 2);
    if (pthread_join(t, &worked) != 0 || worked != &step) return 5;
    puts("the plugin was unloaded, and its thread has ended");
    return 0;
}
