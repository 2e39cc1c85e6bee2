/*
 * output.h - the files that a comparison leaves. Whether they can be written is asked before the runs, and they are
 * written after them, so a bad path costs nobody a run.
 */
#ifndef DEMO_OUTPUT_H
#define DEMO_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Makes sure that descriptors 0 to 2 are open: nothing that is opened later takes the place of one of them. */
void output_init(void);
/* With path "-": standard output is for that file from here on, and what is printed goes to standard error. */
bool output_claim_stdout(const char* path);
/* Says on standard error when a path is hopeless. Makes and changes nothing. */
bool output_check(const char* path);
/* Lets `fill` write the file. False when anything failed, which standard error has been told. */
bool output_write(const char* path, bool (*fill)(FILE* out, const void* ctx), const void* ctx);

#endif
