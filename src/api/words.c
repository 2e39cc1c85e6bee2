/*
 * words.c - receipts and kinds of misuse in words.
 */
#include "api/internal.h"
#include "stats/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char* slab_misuse_name(SlabMisuse what) { return tsi_misuse_name(what); }

/* A piece of a receipt, such as "released 3 (192 bytes)". */
typedef struct Piece {
    const char* what;
    uint64_t count, bytes;
} Piece;

typedef struct Text {
    char* out;
    size_t room, used; /* used: of the whole text, also of the part without room */
} Text;

static void add(Text* text, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* Appends text by a format of printf at text->used, cut to text->room with the 0 that ends it; adds to text->used the
 * bytes of the whole text, also those that find no room. text->out may be NULL if the room is 0.
 * [no other user of text] */
static void add(Text* text, const char* format, ...) {
    va_list args;
    size_t at = text->used < text->room ? text->used : text->room;
    va_start(args, format);
    int n = vsnprintf(at < text->room ? text->out + at : NULL, text->room - at, format, args);
    va_end(args);
    if (n > 0) text->used += (size_t)n;
}

/* Appends the receipt's label, if it has one, as tsi_word_label does, and its id, in hex for a domain's, and era:
 * "\"name\", epoch 3 era 17:". [no other user of text] */
static void add_epoch(Text* text, const EpochReceipt* receipt) {
    if (receipt->label[0] != 0) add(text, "%s, ", tsi_word_label(receipt->label).at);
    add(text, receipt->epoch_id >> 31 != 0 ? "epoch 0x%" PRIx32 : "epoch %" PRIu32, receipt->epoch_id);
    add(text, " era %" PRIu64 ":", receipt->epoch_era);
}

size_t epoch_receipt_text(const EpochReceipt* receipt, char* out, size_t n) {
    Text text = {out, out != NULL ? n : 0, 0};
    if (text.room != 0) out[0] = 0;
    if (receipt == NULL) return 0;

    const Piece objects[] = {{"allocated", receipt->objects_allocated, receipt->bytes_allocated},
                             {"freed", receipt->objects_freed, receipt->bytes_freed},
                             {"released", receipt->objects_released, receipt->bytes_released},
                             {"escaped", receipt->objects_escaped, receipt->bytes_escaped}};

    add_epoch(&text, receipt);
    for (unsigned i = 0; i < 4; i++)
        add(&text, "%s %s %" PRIu64 " (%" PRIu64 " bytes)", i == 0 ? " objects" : ",", objects[i].what,
            objects[i].count, objects[i].bytes);
    add(&text,
        "; slabs returned %" PRIu64 " (%" PRIu64 " bytes), %" PRIu32 " of them regions, deferred %" PRIu64 " (%" PRIu64
        " bytes)",
        receipt->slabs_returned, receipt->bytes_returned, receipt->regions_returned, receipt->slabs_deferred,
        receipt->bytes_deferred);
    add(&text, "; interrupts %" PRIu32 "; took %" PRIu64 " ns", receipt->interrupts, receipt->close_ns);

    if (receipt->rss_before != 0)
        add(&text, "; resident bytes %" PRIu64 " before, %" PRIu64 " after", receipt->rss_before, receipt->rss_after);
    return text.used;
}

/* Returns where a line of at most `width` bytes ends that begins at `text`, as an offset from there: at the last space
 * behind a punctuation mark, else at the last space, else at the first one beyond. Returns 0 if the text, which ends
 * with 0, has no space behind its first byte. [any thread, needs no lock] */
static size_t line_end(const char* text, size_t width) {
    size_t end = 0, marked = 0;
    for (size_t i = 1; text[i] != 0 && (i <= width || end == 0); i++) {
        if (text[i] != ' ') continue;
        end = i;
        if (strchr(",;:", text[i - 1]) != NULL) marked = i;
    }
    return marked != 0 ? marked : end;
}

size_t epoch_receipt_lines(const EpochReceipt* receipt, size_t width, char* out, size_t n) {
    char text[1024]; /* the longest one has less than 700 */
    size_t len = epoch_receipt_text(receipt, text, sizeof text);
    for (size_t at = 0; len - at > width;) {
        size_t end = line_end(text + at, width);
        if (end == 0) break;
        text[at + end] = '\n';
        at += end + 1;
    }

    if (n != 0) (void)snprintf(out, n, "%s", text);
    return len;
}
