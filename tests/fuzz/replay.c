/*
 * replay.c - runs a harness over files, for compilers without libFuzzer: replay FILE-OR-FOLDER...
 *
 * A finding aborts. The last line says how many inputs there were; none at all is a failure.
 */
#include "fuzz/input.h"

#include "kit/check.h"

#include <dirent.h>
#include <sys/stat.h>

#pragma weak LLVMFuzzerInitialize

/* What the custom mutators refer to, and nothing here calls. */
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) { return (void)data, (void)most, size; }

static unsigned replayed;

static void replay(const char* path) {
    FILE* f = fopen(path, "rb");
    struct stat st;
    REQUIRE_OR(f != NULL && fstat(fileno(f), &st) == 0, "%s: %s", path, strerror(errno));
    size_t size = (size_t)st.st_size;
    uint8_t* bytes = malloc(size + (size == 0)); /* exactly, so that checkers see a read beyond it */
    REQUIRE_OR(bytes != NULL && fread(bytes, 1, size, f) == size, "%s: not read", path);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    replayed++;
}

static void replay_all(const char* path) {
    DIR* folder = opendir(path);
    if (folder == NULL) {
        replay(path);
        return;
    }
    for (struct dirent* e; (e = readdir(folder)) != NULL;) {
        char inner[4096];
        if (e->d_name[0] == '.') continue;
        (void)snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        replay(inner);
    }
    (void)closedir(folder);
}

int main(int argc, char** argv) {
    if (LLVMFuzzerInitialize != NULL) (void)LLVMFuzzerInitialize(&argc, &argv);
    (void)LLVMFuzzerTestOneInput((const uint8_t*)"", 0);
    for (int n = 1; n < argc; n++) replay_all(argv[n]);
    printf("%u inputs replayed\n", replayed);
    return replayed == 0;
}
