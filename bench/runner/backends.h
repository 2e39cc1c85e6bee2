/* backends.h - who is compared, and where: the table of backends joined with the manifest of peers. */
#ifndef BENCH_BACKENDS_H
#define BENCH_BACKENDS_H

#include "runner/results.h"

/* Fills r->backends. The manifest is build/peers/peers.tsv beside the build folder unless a path is given. */
void backends_read(struct results* r, const char* manifest_or_null);

/* Makes sure of every wanted backend: its worker is there and malloc comes from where it should. */
void backends_identify(struct results* r);

/* Index of the backend of that name, -1 for none. */
int backend_find(const struct results* r, const char* name);

/* A path relative to the folder of this program, until the next one. */
const char* beside(const char* name);

/* The worker program of a backend. */
void worker_path(const struct backend* b, char* out, size_t size);

#endif
