/* A library that takes BYTES of every thread's static block. */
__attribute__((visibility("default"))) char* filler_use(void);

static _Thread_local char block[BYTES] __attribute__((tls_model("initial-exec"), aligned(8)));

char* filler_use(void) { return block; }
