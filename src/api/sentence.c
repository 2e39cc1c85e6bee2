/*
 * sentence.c - the sentence of slab_last_error.
 *
 * Most sentences are literals, and the thread keeps a pointer to one. Sentences with numbers are written into a text of
 * the thread, which is mapped at the first of them and unmapped when the thread exits: static storage of a thread is
 * scarce for a library that is loaded late.
 */
#include "api/internal.h"

#include "heap/leave.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local const char* sentence; /* NULL: none */
static pthread_key_t key;                  /* of the thread's text */
static bool key_ok;

const char* slab_last_error(void) { return sentence != NULL ? sentence : ""; }

/* Gives `text`, the value of the key, back as its thread exits, and clears the thread's sentence. A thread that sets a
 * sentence in a later destructor gets another text, and this is called again. [exiting thread] */
static void drop_text(void* text) {
    sentence = NULL;
    tsi_os_drop(text, TSI_SENTENCE_BYTES);
}

/* Makes the key of the threads' texts and sets key_ok, which stays false if the system has none left. [pthread_once] */
static void make_key(void) { key_ok = pthread_key_create(&key, drop_text) == 0; }

/* Returns the thread's text, of TSI_SENTENCE_BYTES, which it keeps until it exits; made of zeros if it has none; NULL
 * if the system refuses. May change errno. [any thread, no lock held] */
static char* text_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    tsi_process_init(); /* the size of a page */
    (void)pthread_once(&once, make_key);
    char* text = key_ok ? pthread_getspecific(key) : NULL;
    if (text != NULL || !key_ok) return text;

    text = tsi_os_map(TSI_SENTENCE_BYTES);
    if (text == NULL || pthread_setspecific(key, text) == 0) return text;
    tsi_os_drop(text, TSI_SENTENCE_BYTES);
    return NULL;
}

void tsi_clear_error(void) { sentence = NULL; }

char* tsi_error_text(void) {
    int saved = errno;
    char* text = text_get();
    errno = saved;
    if (text == NULL) {
        sentence = "no memory for the sentence that says why";
    } else if (sentence != text) {
        text[0] = 0;
        sentence = text;
    }
    return text;
}

bool tsi_set_error(const char* format, ...) {
    char* text = tsi_error_text();
    if (text == NULL) return false;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, TSI_SENTENCE_BYTES, format, args);
    va_end(args);
    return false;
}

void* tsi_failed(int error, const char* literal) {
    sentence = literal;
    tsi_error_set(error);
    return NULL;
}

bool tsi_failed_bool(int error, const char* literal) { return tsi_failed(error, literal) != NULL; }
