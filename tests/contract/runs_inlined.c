/*
 * runs_inlined.c - runs.c as a program has it that is not built to be checked: nothing asks for the thread.
 */
#define NDEBUG
#include "runs.c"
