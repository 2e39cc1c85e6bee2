/*
 * temporal_slab/libxml2.h - makes libxml2 allocate its memory in the calling thread's phase. Header-only, for libxml2
 * 2.9 and later.
 *
 *     tslab_xml_init(allocator);          // before any other call to libxml2 in the process
 *     ...
 *     tslab_xml_end(domain, &receipt);    // instead of epoch_domain_end_ex
 *
 * The allocation hooks of libxml2 are global to the process and take no context argument. After tslab_xml_init, all
 * memory that libxml2 allocates comes from the given allocator. This memory lies in the calling thread's innermost
 * domain of that allocator. If the thread is outside all domains of the allocator, the memory lies in the current ring
 * epoch (see epoch_domain.h). A document, a parser context or a reader can end with its phase, without a call to
 * xmlFreeDoc or a similar function.
 *
 * Objects that libxml2 keeps until the process ends must not lie in a phase. The function tslab_xml_init creates these
 * objects outside all phases: the global data of the parser, the encodings, and the types of XML Schema and RELAX NG.
 * In addition, tslab_xml_init disables XML catalogs (xmlCatalogSetDefaults). Otherwise, libxml2 would load the catalogs
 * for the first document that needs one, and keep them in the phase of that document. libxml2 also stores the last
 * error of each thread; tslab_xml_end clears the error of the calling thread. Objects outside all phases lie in the
 * ring, so use an allocator whose ring you never advance and whose ring epochs you never release.
 *
 * Rules:
 *
 *   - Do not end a phase while xmlGetLastError() returns an error on any thread that was inside the phase. Each such
 *     thread must call xmlResetLastError() before it leaves the phase; tslab_xml_end does so for the calling thread.
 *     Otherwise, libxml2 later frees the old error at an address that may already belong to another object.
 *
 *   - Do not enable catalogs again. Catalogs would be allocated in the first phase that uses one.
 *
 *   - Inside a phase, do not register an encoding or an alias (xmlAddEncodingAlias), and do not let libxml2 use the
 *     network, because libxml2 keeps the encodings, aliases and proxy settings. These actions are allowed outside all
 *     phases.
 *
 *   - Inside a phase, do not change a document that outlives the phase. New nodes would be allocated in the phase and
 *     end with it. To change such a document, enter its domain or leave the phase (epoch_domain_detach,
 *     epoch_domain_attach).
 *
 *   - Do not use any libxml2 object after its phase has ended.
 *
 *   - Use xmlFree, never free(), for the text that xmlNodeGetContent and similar functions return.
 *
 *   - Do not free objects that were created before tslab_xml_init. The allocator refuses and counts such a free.
 *
 *   - Some libraries, such as extensions of libxslt, keep libxml2 objects until the process ends. Such objects must be
 *     created outside all phases.
 *
 * To stop using the allocator, call xmlCleanupParser() outside all phases, then xmlMemSetup(free, malloc, realloc,
 * strdup). Only then free the allocator.
 *
 * Errors: if memory runs out or an allocation would exceed a hard budget, libxml2 returns NULL and calls its error
 * handlers.
 *
 * Thread safety: call tslab_xml_init before other threads use libxml2. The most recent call, from any source file,
 * takes effect for the whole process.
 *
 * Complexity: each hook call costs one slab_malloc, slab_realloc or slab_free.
 */
#ifndef TEMPORAL_SLAB_LIBXML2_H
#define TEMPORAL_SLAB_LIBXML2_H

#include <epoch_domain.h>
#include <libxml/catalog.h>
#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <libxml/xmlerror.h>
#include <libxml/xmlmemory.h>
#include <libxml/xmlschemastypes.h>
#include <string.h>
#if defined(LIBXML_RELAXNG_ENABLED) || (defined(LIBXML_SCHEMAS_ENABLED) && LIBXML_VERSION < 21400)
#define TSLAB_XML_RELAXNG_
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline SlabAllocator** tslab_xml_allocator_(void) {
    static SlabAllocator* allocator;
    return &allocator;
}

static inline void* tslab_xml_malloc(size_t size) { return slab_malloc(*tslab_xml_allocator_(), size != 0 ? size : 1); }

static inline void tslab_xml_free(void* p) { slab_free(*tslab_xml_allocator_(), p); }

/* Resizes a block. A block that moves stays in its phase. A block outside all phases stays outside. */
static inline void* tslab_xml_realloc(void* p, size_t size) {
    return slab_realloc(*tslab_xml_allocator_(), p, size != 0 || p != NULL ? size : 1);
}

static inline char* tslab_xml_strdup(const char* text) { return slab_strdup(*tslab_xml_allocator_(), text); }

/* Allocates outside all phases, for objects that libxml2 keeps until the process ends. */
static inline void* tslab_xml_malloc_outside(size_t size) {
    return slab_malloc_outside(*tslab_xml_allocator_(), size != 0 ? size : 1);
}

static inline void* tslab_xml_realloc_outside(void* p, size_t size) {
    return p != NULL ? tslab_xml_realloc(p, size) : tslab_xml_malloc_outside(size);
}

static inline char* tslab_xml_strdup_outside(const char* text) {
    size_t size = strlen(text) + 1;
    void* p = tslab_xml_malloc_outside(size);
    return p != NULL ? (char*)memcpy(p, text, size) : NULL;
}

/* Sets the hooks of libxml2 and creates the objects that libxml2 keeps until the process ends. These objects lie
 * outside all phases, even if the thread is inside a domain. The caller owns the allocator and must not free it while
 * libxml2 is in use. Returns true on success. Returns false if memory runs out. If a is NULL, returns false and changes
 * nothing. */
static inline bool tslab_xml_init(SlabAllocator* a) {
    bool made = true;
    if (a == NULL) return false;
    *tslab_xml_allocator_() = a;
    (void)xmlMemSetup(tslab_xml_free, tslab_xml_malloc_outside, tslab_xml_realloc_outside, tslab_xml_strdup_outside);
    xmlInitParser();
#ifdef LIBXML_CATALOG_ENABLED
    xmlCatalogSetDefaults(XML_CATA_ALLOW_NONE);
#endif
#ifdef LIBXML_SCHEMAS_ENABLED
    made = xmlSchemaGetBuiltInType(XML_SCHEMAS_STRING) != NULL; /* the first call creates all built-in types */
#endif
#ifdef TSLAB_XML_RELAXNG_
    made = xmlRelaxNGInitTypes() == 0 && made;
#endif
    return xmlMemSetup(tslab_xml_free, tslab_xml_malloc, tslab_xml_realloc, tslab_xml_strdup) == 0 && made;
}

/* Clears the calling thread's last libxml2 error, which may lie in the phase. Then ends the phase with
 * epoch_domain_end_ex, and returns the result of that call. */
static inline bool tslab_xml_end(epoch_domain_t* d, EpochReceipt* out) {
    xmlResetLastError();
    return epoch_domain_end_ex(d, out);
}

#ifdef __cplusplus
}
#endif
#endif
