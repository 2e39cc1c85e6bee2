/* label.c - the registry of label.h. */
#include "phase/label.h"

#include <string.h>

/* Copies `name` (tsi_label_copy) into a record, which no other thread knows yet; puts it into no slot. [only holder] */
static void name_it(TsiLabel* label, const char* name) { tsi_label_copy(label->name, name); }

bool tsi_labels_init(TsiLabels* labels, TsiGround* ground, uint32_t capacity) {
    uint32_t none, other;
    labels->capacity = capacity;
    tsi_lock_init(&labels->lock, TSI_LOCK_LABELS);
    tsi_table_init_in(&labels->records, ground, sizeof(TsiLabel), capacity, false);
    if (!tsi_table_take(&labels->records, &none, 0) || !tsi_table_take(&labels->records, &other, 0)) return false;
    tsi_lock_init(&tsi_label(labels, TSI_LABEL_NONE)->drain_lock, TSI_LOCK_DRAINS);
    tsi_lock_init(&tsi_label(labels, TSI_LABEL_OTHER)->drain_lock, TSI_LOCK_DRAINS);
    name_it(tsi_label(labels, TSI_LABEL_NONE), "(unlabeled)");
    name_it(tsi_label(labels, TSI_LABEL_OTHER), "(other)");
    return true;
}

void tsi_labels_destroy(TsiLabels* labels) { tsi_table_destroy(&labels->records); }

void tsi_label_copy(char out[TSI_LABEL_BYTES], const char* label) {
    memset(out, 0, TSI_LABEL_BYTES);
    if (label == NULL) return;
    size_t n = strnlen(label, TSI_LABEL_BYTES);
    if (n == TSI_LABEL_BYTES) {
        n--;
        while (n > 0 && ((unsigned char)label[n] & 0xc0) == 0x80) n--;
    }
    memcpy(out, label, n);
}

/* Returns a hash, 0 to 2^24 - 1, of all 32 bytes, those behind the text too; it has no loop over the text.
 * [any thread, needs no lock] */
static uint32_t hash_of(const char name[TSI_LABEL_BYTES]) {
    uint64_t w[4];
    memcpy(w, name, sizeof w);
    uint64_t h = (w[0] ^ (w[1] << 29 | w[1] >> 35)) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ w[2] ^ (w[3] << 31 | w[3] >> 33)) * 0xd6e8feb86659fd93u;
    return (uint32_t)(h >> 40);
}

/* Finds the name's record. Returns true, with *at set to its index and *slot to where it was found; false if there is
 * none: *slot is then the free slot where it goes, and *at means nothing. [any thread, needs no lock] */
static bool probe(TsiLabels* labels, const char name[TSI_LABEL_BYTES], uint32_t* slot, uint32_t* at) {
    for (*slot = hash_of(name) % TSI_LABEL_INDEX;; *slot = (*slot + 1) % TSI_LABEL_INDEX) {
        uint32_t found = tsi_load_acquire(&labels->slots[*slot]); /* pairs with the release below */
        if (found == 0) return false;
        *at = found - 1;
        if (memcmp(tsi_label(labels, *at)->name, name, TSI_LABEL_BYTES) == 0) return true;
    }
}

uint32_t tsi_label_count(TsiLabels* labels) {
    tsi_lock_take(&labels->lock);
    uint32_t count = tsi_table_used(&labels->records);
    tsi_lock_give(&labels->lock);
    return count;
}

uint32_t tsi_label_find(TsiLabels* labels, const char name[TSI_LABEL_BYTES]) {
    uint32_t slot, at;
    if (name[0] == 0 || memcmp(name, tsi_label(labels, TSI_LABEL_NONE)->name, TSI_LABEL_BYTES) == 0)
        return TSI_LABEL_NONE;
    if (memcmp(name, tsi_label(labels, TSI_LABEL_OTHER)->name, TSI_LABEL_BYTES) == 0) return TSI_LABEL_OTHER;
    if (probe(labels, name, &slot, &at)) return at;

    tsi_lock_take(&labels->lock);
    if (!probe(labels, name, &slot, &at)) {
        if (tsi_table_take(&labels->records, &at, 0)) {
            tsi_lock_init(&tsi_label(labels, at)->drain_lock, TSI_LOCK_DRAINS);
            memcpy(tsi_label(labels, at)->name, name, TSI_LABEL_BYTES);
            tsi_store_release(&labels->slots[slot], (uint16_t)(at + 1)); /* pairs with probe: the name is whole */
        } else {
            at = TSI_LABEL_OTHER;
        }
    }
    tsi_lock_give(&labels->lock);
    return at;
}
