/*
 * libxml2.c - a large document read in all the ways libxml2 has, validated, changed and written, and documents that are
 * wrong, in phases on two threads: what is freed by hand and what just ends gives the same as malloc.
 */
#include <temporal_slab/libxml2.h>

#include "adapters/adapter.h"

#include <libxml/HTMLparser.h>
#include <libxml/HTMLtree.h>
#include <libxml/c14n.h>
#include <libxml/valid.h>
#include <libxml/xmlreader.h>
#include <libxml/xmlregexp.h>
#include <libxml/xmlsave.h>
#include <libxml/xmlschemas.h>
#include <libxml/xmlwriter.h>
#include <libxml/xpath.h>
#include <pthread.h>

static const unsigned long adapter_least = 300000;
enum { QUIET = XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NONET };

static const Text* document(void) { return adapter_file("/usr/share/xml/iso-codes/iso_639-3.xml"); }

/* Begins inside of a phase, to see that nothing of the process gets into it. */
static void adapter_install(SlabAllocator* a) {
    REQUIRE(!tslab_xml_init(NULL));
    (void)document();
    epoch_domain_t* d = adapter_enter(a, "first");
    if (a != NULL) REQUIRE(tslab_xml_init(a));
    REQUIRE(adapter_leave(d).objects_allocated == 0);
}

static void adapter_remove(SlabAllocator* a) {
    xmlCleanupParser();
    if (a != NULL) REQUIRE(xmlMemSetup(free, malloc, realloc, strdup) == 0);
}

/* Messages are part of what is compared: the callbacks keep them off the terminal. */
static void quiet(void* unused, const char* format, ...) {
    (void)unused;
    (void)format;
}

/* ---- work: `frees`, or leave it to the end of the phase ---- */

static xmlDocPtr parsed(const char* text, int options) {
    return xmlReadMemory(text, (int)strlen(text), "memory.xml", NULL, QUIET | options);
}

static void add_doc(Text* out, xmlDocPtr doc, const char* encoding, bool frees) {
    xmlChar* bytes = NULL;
    int n = 0;
    xmlDocDumpFormatMemoryEnc(doc, &bytes, &n, encoding, 1);
    REQUIRE(bytes != NULL);
    text_add(out, bytes, (size_t)n);
    if (frees) xmlFree(bytes);
}

static void ask(Text* out, xmlDocPtr doc, const char* path, bool frees) {
    xmlXPathContextPtr context = xmlXPathNewContext(doc);
    xmlXPathObjectPtr found = xmlXPathEvalExpression(BAD_CAST path, context);
    REQUIRE(found != NULL);
    xmlChar* text = xmlXPathCastToString(found);
    text_format(out, "%s: %d %.200s\n", path, found->nodesetval != NULL ? found->nodesetval->nodeNr : -1, (char*)text);
    if (!frees) return;
    xmlFree(text);
    xmlXPathFreeObject(found);
    xmlXPathFreeContext(context);
}

static void change(xmlDocPtr doc) {
    unsigned n = 0;
    for (xmlNodePtr row = xmlDocGetRootElement(doc)->children; row != NULL; row = row->next) {
        if (row->type != XML_ELEMENT_NODE) continue;
        char text[60];
        (void)snprintf(text, sizeof text, "note <%u> & \"more\"", n);
        if (n % 3 == 0) REQUIRE(xmlNewTextChild(row, NULL, BAD_CAST "note", BAD_CAST text) != NULL);
        if (n % 5 == 0) REQUIRE(xmlSetProp(row, BAD_CAST "number", BAD_CAST text) != NULL);
        if (n++ % 7 == 0) (void)xmlUnsetProp(row, BAD_CAST "type");
    }
}

static void as_tree(Text* out, bool frees) {
    xmlDocPtr doc = xmlReadMemory(document()->bytes, (int)document()->size, "iso.xml", NULL, QUIET | XML_PARSE_DTDATTR);
    REQUIRE(doc != NULL);
    ask(out, doc, "//iso_639_3_entry[@type='A']", frees);
    ask(out, doc, "count(//*[starts-with(@name, 'Old ')])", frees);
    ask(out, doc, "string(//iso_639_3_entry[last() - 5]/@name)", frees);
    xmlDocPtr copy = xmlCopyDoc(doc, 1);
    REQUIRE(copy != NULL);
    change(copy);
    add_doc(out, copy, "UTF-8", frees);
    xmlChar* canonical = NULL;
    int n = xmlC14NDocDumpMemory(doc, NULL, XML_C14N_1_0, NULL, 0, &canonical);
    REQUIRE(n > 500000);
    text_add(out, canonical, (size_t)n);
    if (!frees) return;
    xmlFree(canonical);
    xmlFreeDoc(doc);
    xmlFreeDoc(copy);
}

static void as_stream(Text* out, bool frees) {
    unsigned nodes = 0, attributes = 0;
    xmlTextReaderPtr reader = xmlReaderForMemory(document()->bytes, (int)document()->size, NULL, NULL, QUIET);
    REQUIRE(reader != NULL);
    while (xmlTextReaderRead(reader) == 1) {
        nodes++;
        while (xmlTextReaderMoveToNextAttribute(reader) == 1) attributes++;
    }
    text_format(out, "%u nodes, %u attributes\n", nodes, attributes);
    if (frees) xmlFreeTextReader(reader);

    xmlParserCtxtPtr push = xmlCreatePushParserCtxt(NULL, NULL, NULL, 0, NULL);
    for (size_t at = 0; at < document()->size; at += 1000) {
        size_t n = document()->size - at < 1000 ? document()->size - at : 1000;
        REQUIRE(xmlParseChunk(push, document()->bytes + at, (int)n, 0) == 0);
    }
    REQUIRE(xmlParseChunk(push, "", 0, 1) == 0 && push->wellFormed);
    add_doc(out, push->myDoc, "ISO-8859-1", frees); /* what it cannot say becomes a reference */
    if (!frees) return;
    xmlFreeDoc(push->myDoc);
    xmlFreeParserCtxt(push);
}

static void encodings(Text* out, bool frees) {
    static const char* const names[] = {"UTF-16", "EUC-JP", "KOI8-R", "ASCII"};
    for (int i = 0; i < 4; i++) {
        xmlDocPtr doc = parsed("<a \xc3\xa4='\xe6\x97\xa5\xe6\x9c\xac'>\xd0\x9c\xd0\xb8\xd1\x80<b/>&#233;</a>", 0);
        xmlChar* bytes = NULL;
        int n = 0;
        REQUIRE(doc != NULL);
        xmlDocDumpMemoryEnc(doc, &bytes, &n, names[i]);
        text_add(out, bytes, (size_t)n);
        xmlDocPtr again = bytes != NULL ? xmlReadMemory((char*)bytes, n, NULL, NULL, QUIET) : NULL;
        if (again != NULL) add_doc(out, again, "UTF-8", frees);
        if (!frees) continue;
        xmlFree(bytes);
        xmlFreeDoc(doc);
        xmlFreeDoc(again);
    }
}

static void validity(Text* out, bool frees) {
    static const char schema_text[] =
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='a'><xs:complexType><xs:sequence>"
        "<xs:element name='n' type='xs:decimal' maxOccurs='9'/><xs:element name='d' type='xs:date'/></xs:sequence>"
        "<xs:attribute name='k' use='required'><xs:simpleType><xs:restriction base='xs:string'><xs:pattern value='[a-f]{3}'/>"
        "</xs:restriction></xs:simpleType></xs:attribute></xs:complexType></xs:element></xs:schema>";
    static const char relax_text[] =
        "<element name='a' xmlns='http://relaxng.org/ns/structure/1.0'"
        " datatypeLibrary='http://www.w3.org/2001/XMLSchema-datatypes'><attribute name='k'><data type='NMTOKEN'/></attribute>"
        "<oneOrMore><element name='n'><data type='integer'/></element></oneOrMore><element name='d'><text/></element></element>";
    static const char* const docs[] = {"<a k='abc'><n>1.5</n><d>2024-02-29</d></a>", "<a k='abc'><n>1</n><n>2</n><d>2023-02-29</d></a>",
                                       "<a k='xyz'><n>one</n><d>2024-02-28</d></a>", "<a><n>7</n></a>"};
    xmlSchemaPtr schema = NULL;
    xmlSchemaParserCtxtPtr from = xmlSchemaNewMemParserCtxt(schema_text, sizeof schema_text - 1);
    xmlRelaxNGParserCtxtPtr relax_from = xmlRelaxNGNewMemParserCtxt(relax_text, sizeof relax_text - 1);
    xmlRelaxNGPtr relax = NULL;
    REQUIRE(from != NULL && (schema = xmlSchemaParse(from)) != NULL);
    REQUIRE(relax_from != NULL && (relax = xmlRelaxNGParse(relax_from)) != NULL);
    for (int i = 0; i < 4; i++) {
        xmlDocPtr doc = parsed(docs[i], 0);
        xmlSchemaValidCtxtPtr by = xmlSchemaNewValidCtxt(schema);
        xmlRelaxNGValidCtxtPtr relax_by = xmlRelaxNGNewValidCtxt(relax);
        xmlSchemaSetValidErrors(by, quiet, quiet, NULL);
        xmlRelaxNGSetValidErrors(relax_by, quiet, quiet, NULL);
        text_format(out, "document %d: %d", i, xmlSchemaValidateDoc(by, doc));
        text_format(out, " %d\n", xmlRelaxNGValidateDoc(relax_by, doc));
        xmlErrorPtr e = xmlGetLastError();
        text_format(out, "%d %s\n", e != NULL ? e->code : 0, e != NULL ? e->message : "");
        if (!frees) continue;
        xmlSchemaFreeValidCtxt(by);
        xmlRelaxNGFreeValidCtxt(relax_by);
        xmlFreeDoc(doc);
    }
    xmlRegexpPtr regexp = xmlRegexpCompile(BAD_CAST "(a|bc)*d{2,5}[^x-z]?");
    text_format(out, "%d %d\n", xmlRegexpExec(regexp, BAD_CAST "abcadddq"), xmlRegexpExec(regexp, BAD_CAST "abd"));
    if (!frees) return;
    xmlRegFreeRegexp(regexp);
    xmlSchemaFree(schema);
    xmlSchemaFreeParserCtxt(from);
    xmlRelaxNGFree(relax);
    xmlRelaxNGFreeParserCtxt(relax_from);
}

/* Documents that are wrong, a page, and one that asks for a catalog and a file that is not there. */
static void wrong(Text* out, bool frees) {
    static const char* const texts[] = {"<a><b></a>", "<a x='1' x='2'/>", "<?xml version='1.0' encoding='nonsense'?><a/>", "<a>&undefined;</a>",
                                        "<!DOCTYPE a [<!ELEMENT a (b)><!ENTITY e 'text'>]><a>&e;</a>", ""};
    for (int i = 0; i < 6; i++) {
        xmlDocPtr doc = parsed(texts[i], XML_PARSE_RECOVER | XML_PARSE_NOENT | XML_PARSE_DTDVALID);
        xmlErrorPtr e = xmlGetLastError();
        text_format(out, "%d: %d %s", i, e != NULL ? e->code : 0, e != NULL && e->message != NULL ? e->message : "\n");
        if (doc != NULL) add_doc(out, doc, "UTF-8", frees);
        if (frees) xmlFreeDoc(doc);
    }
    xmlDocPtr doc = parsed("<?oasis-xml-catalog catalog='no.catalog'?><!DOCTYPE a PUBLIC '-//NO//ONE' 'no.dtd'><a/>", XML_PARSE_DTDLOAD);
    REQUIRE(doc != NULL);
    if (frees) xmlFreeDoc(doc);
    htmlDocPtr page = htmlReadMemory("<p>one<p>two<table><td>cell<script>x<y</script>", 46, NULL, NULL, HTML_PARSE_NOERROR);
    xmlChar* text = NULL;
    int n = 0;
    REQUIRE(page != NULL);
    htmlDocDumpMemory(page, &text, &n);
    text_add(out, text, (size_t)n);
    if (!frees) return;
    xmlFree(text);
    xmlFreeDoc(page);
}

static void written(Text* out, bool frees) {
    xmlBufferPtr buffer = xmlBufferCreate();
    xmlTextWriterPtr writer = xmlNewTextWriterMemory(buffer, 0);
    REQUIRE(writer != NULL && xmlTextWriterStartDocument(writer, NULL, "UTF-8", NULL) >= 0);
    REQUIRE(xmlTextWriterStartElement(writer, BAD_CAST "all") >= 0);
    for (int i = 0; i < 5000; i++)
        REQUIRE(xmlTextWriterWriteFormatElement(writer, BAD_CAST "n", "%d < %d", i, i * i) >= 0);
    REQUIRE(xmlTextWriterEndDocument(writer) >= 0);
    text_add(out, xmlBufferContent(buffer), (size_t)xmlBufferLength(buffer));
    if (!frees) return;
    xmlFreeTextWriter(writer);
    xmlBufferFree(buffer);
}

static void work(Text* out, bool frees) {
    as_tree(out, frees);
    as_stream(out, frees);
    encodings(out, frees);
    validity(out, frees);
    wrong(out, frees);
    written(out, frees);
    REQUIRE(parsed("<last", 0) == NULL && xmlGetLastError() != NULL); /* the thread's last error lies in the phase */
}

/* ---- runs ---- */

typedef struct Turn {
    Text* out;
    SlabAllocator* a;
    bool frees;
} Turn;

static void* turn(void* arg) {
    Turn* t = arg;
    EpochReceipt r = {0};
    epoch_domain_t* d = adapter_enter(t->a, "document");
    work(t->out, t->frees || d == NULL);
    if (d != NULL) {
        REQUIRE(tslab_xml_end(d, &r));
        adapter_count(&r);
        REQUIRE(t->frees ? r.objects_released == 0 : r.objects_released > 100000);
    }
    REQUIRE(d == NULL || xmlGetLastError() == NULL);
    return NULL;
}

static void adapter_run(Text* out, SlabAllocator* a) {
    Turn first = {out, a, false}, second = {out, a, true};
    pthread_t thread;
    (void)turn(&first);
    REQUIRE(pthread_create(&thread, NULL, turn, &second) == 0 && pthread_join(thread, NULL) == 0);
}

static void adapter_starve(SlabAllocator* a) {
    unsigned refused = 0, done = 0;
    xmlSetGenericErrorFunc(NULL, quiet); /* it says so each time that it finds no memory */
    for (size_t budget = 64 << 10; budget <= 64 << 20; budget *= 4) {
        epoch_domain_t* d = adapter_enter(a, "hungry document");
        REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, budget, NULL, NULL));
        xmlResetLastError();
        xmlDocPtr doc = xmlReadMemory(document()->bytes, (int)document()->size, NULL, NULL, QUIET);
        bool whole = doc != NULL && xmlChildElementCount(xmlDocGetRootElement(doc)) > 7000;
        *(whole ? &done : &refused) += 1;
        /* Which allocation is the refused one differs from run to run (libxml2 seeds its dictionary by the clock). Where
           it is one of a node, libxml2 stops, says that it has no memory, and hands out the part that it has read. */
        REQUIRE(whole || doc == NULL || (xmlGetLastError() != NULL && xmlGetLastError()->code == XML_ERR_NO_MEMORY));
        xmlFreeDoc(doc);
        EpochReceipt r;
        REQUIRE(tslab_xml_end(d, &r));
        adapter_count(&r);
    }
    REQUIRE(refused >= 2 && done >= 1);
}
