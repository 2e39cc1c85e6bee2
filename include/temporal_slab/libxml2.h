/*
 * temporal_slab/libxml2.h - documents of libxml2 in the phase that the thread is in. Header only; libxml2 from 2.9 on.
 *
 *     tslab_xml_init(allocator);          // before any other call of libxml2 in the process
 *     ...
 *     tslab_xml_end(domain, &receipt);    // instead of epoch_domain_end_ex
 *
 * The hooks are global to the process and have no context. Once they are set, everything that libxml2 allocates is an
 * object of that allocator. The object lies in the innermost domain of the allocator that the calling thread has
 * entered, or, outside any domain, in the current ring epoch. A document, a parser context or a reader may end with its
 * phase, without xmlFreeDoc.
 *
 * Objects that libxml2 keeps for the process must not lie in a phase. tslab_xml_init makes them outside all phases: the
 * parser, encodings, and types of XML Schema and RELAX NG. In addition, tslab_xml_init switches XML catalogs off
 * (xmlCatalogSetDefaults), because libxml2 would read and keep them in the phase of the first document that asks for
 * one. libxml2 also keeps the last error of a thread, which tslab_xml_end forgets. Give libxml2 an allocator whose ring
 * is not advanced and whose ring epochs are not released.
 *
 * You may not
 *   - end a phase while xmlGetLastError() is set on any thread that was inside. Each such thread must call
 *     xmlResetLastError() before it leaves (tslab_xml_end does so for the calling thread). Otherwise libxml2 frees the
 *     old error later, in memory that has another owner by then;
 *   - switch catalogs on again: the first phase that asks for one would hold it;
 *   - register an encoding or an alias of one (xmlAddEncodingAlias), or use the network (libxml2 keeps the proxy),
 *     inside a phase (outside all phases, both are fine);
 *   - change a document that lives longer while inside a phase: new nodes would lie in the phase. To change the
 *     document, enter its scope or leave the phase (epoch_domain_detach, epoch_domain_attach);
 *   - use anything of libxml2 after its phase has ended, or free text of xmlNodeGetContent and similar calls with
 *     free(): use xmlFree;
 *   - free objects made before tslab_xml_init: that is refused and counted;
 *   - use libraries on top that keep libxml2 objects for the process (extensions of libxslt), unless these objects are
 *     made outside all phases.
 *
 * To end all use: call xmlCleanupParser() outside all phases, then xmlMemSetup(free, malloc, realloc, strdup), before
 * the allocator is freed.
 *
 * Errors: if memory runs out or a hard budget would be exceeded, libxml2 returns NULL and reports by its error
 * functions.
 * Thread safety: call tslab_xml_init before other threads use libxml2. The source file that makes the call remembers
 * the allocator; the last call in the process applies.
 * Complexity: a hook costs a slab_malloc, slab_realloc or slab_free.
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

/* Resizes a block. A block that moves stays in its phase, or outside all phases. */
static inline void* tslab_xml_realloc(void* p, size_t size) {
    return slab_realloc(*tslab_xml_allocator_(), p, size != 0 || p != NULL ? size : 1);
}

static inline char* tslab_xml_strdup(const char* text) { return slab_strdup(*tslab_xml_allocator_(), text); }

/* Allocates for the process. */
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

/* Sets the hooks, and makes the objects that libxml2 keeps. These lie outside all phases, whatever scope the thread is
 * in. The allocator stays the caller's and must outlive the use of libxml2. Returns false if memory runs out, or,
 * without setting anything, if a is NULL. */
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
    made = xmlSchemaGetBuiltInType(XML_SCHEMAS_STRING) != NULL; /* the first call makes all types */
#endif
#ifdef TSLAB_XML_RELAXNG_
    made = xmlRelaxNGInitTypes() == 0 && made;
#endif
    return xmlMemSetup(tslab_xml_free, tslab_xml_malloc, tslab_xml_realloc, tslab_xml_strdup) == 0 && made;
}

/* Forgets the thread's last error of libxml2, which may lie in the phase, and ends the phase by epoch_domain_end_ex. */
static inline bool tslab_xml_end(epoch_domain_t* d, EpochReceipt* out) {
    xmlResetLastError();
    return epoch_domain_end_ex(d, out);
}

#ifdef __cplusplus
}
#endif
#endif
