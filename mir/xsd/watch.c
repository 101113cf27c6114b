#include "watch.h"

#include <stdlib.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <libxml/xmlschemas.h>
#include <libxml/xmlschemastypes.h>
#include <libxml/xmlversion.h>

#if LIBXML_VERSION >= 21200
typedef const xmlError *reported;
#else
typedef xmlError *reported;
#endif

// keep copies a message. What makes one too long is a value in its middle: how it
// begins and how it ends is what says something.
static void keep(char *kept, size_t size, const char *message)
{
	size_t length = strlen(message), half = size / 2 - 1;
	if (length < size) {
		memcpy(kept, message, length + 1);
		return;
	}
	memcpy(kept, message, half);
	memcpy(kept + half, message + length - half, half + 1);
}

static void note(void *data, reported error)
{
	watch *w = data;
	if (error->level < XML_ERR_ERROR || w->count >= WATCH_FAULTS)
		return;
	watch_fault *fault = &w->faults[w->count++];
	fault->code = error->code;
	fault->line = error->line;
	fault->element = w->element;
	keep(fault->message, sizeof fault->message, error->message == NULL ? "" : error->message);
}

void watch_init(void)
{
	xmlInitParser();
	xmlSchemaInitTypes();
}

watch *watch_new(void)
{
	return calloc(1, sizeof(watch));
}

static void drop_context(watch *w)
{
	if (w->context != NULL)
		xmlSchemaFreeValidCtxt(w->context);
	w->context = NULL;
}

void watch_free(watch *w)
{
	if (w != NULL)
		drop_context(w);
	free(w);
}

void watch_begin(watch *w)
{
	w->count = 0;
	w->element = 0;
	xmlSetStructuredErrorFunc(w, (xmlStructuredErrorFunc) note);
}

void watch_end(void)
{
	xmlSetStructuredErrorFunc(NULL, NULL);
	xmlResetLastError();
}

// reader walks over the events.
typedef struct {
	const char *at;
	xmlSAXHandlerPtr sax;
	void *context;
} reader;

static const xmlChar *text(reader *r)
{
	const char *start = r->at;
	r->at += strlen(start) + 1;
	return (const xmlChar *) start;
}

// named is a text that libxml2 wants to be NULL where there is none.
static const xmlChar *named(reader *r)
{
	const xmlChar *name = text(r);
	return *name == 0 ? NULL : name;
}

static void start_element(reader *r)
{
	// libxml2 takes five pointers for each attribute: name, prefix, namespace,
	// and where its value begins and ends. A byte bounds their number.
	const xmlChar *namespaces[2 * 255], *attributes[5 * 255];
	const xmlChar *name = text(r), *uri = named(r);
	int bound = (unsigned char) *r->at++, own = (unsigned char) *r->at++;
	for (int i = 0; i < bound; i++) {
		namespaces[2 * i] = named(r);
		namespaces[2 * i + 1] = named(r);
	}
	for (int i = 0; i < own; i++) {
		attributes[5 * i] = text(r);
		attributes[5 * i + 1] = NULL;
		attributes[5 * i + 2] = named(r);
		attributes[5 * i + 3] = text(r);
		attributes[5 * i + 4] = (const xmlChar *) r->at - 1;
	}
	r->sax->startElementNs(r->context, name, NULL, uri, bound, namespaces, own, 0, attributes);
}

static void tell(watch *w, reader *r, const char *end)
{
	int started = 0;
	while (r->at < end) {
		switch (*r->at++) {
		case 'S':
			w->element = started++;
			start_element(r);
			break;
		case 'T': {
			const xmlChar *content = text(r);
			r->sax->characters(r->context, content, xmlStrlen(content));
			break;
		}
		case 'E': {
			int32_t closed;
			memcpy(&closed, r->at, sizeof closed);
			r->at += sizeof closed;
			w->element = closed;
			const xmlChar *name = text(r), *uri = named(r);
			r->sax->endElementNs(r->context, name, NULL, uri);
			break;
		}
		}
	}
}

// ready makes a context for a watch that has none. A watch is for one schema.
static int ready(watch *w, xmlSchemaPtr schema)
{
	if (w->context != NULL)
		return 1;
	w->context = xmlSchemaNewValidCtxt(schema);
	if (w->context == NULL)
		return 0;
	xmlSchemaSetValidStructuredErrors(w->context, (xmlStructuredErrorFunc) note, w);
	return 1;
}

int watch_validate(watch *w, uintptr_t schema, const char *events, int size)
{
	w->count = 0;
	if (!ready(w, (xmlSchemaPtr) schema))
		return -1;
	reader r = {.at = events};
	xmlSchemaSAXPlugPtr plug = xmlSchemaSAXPlug(w->context, &r.sax, &r.context);
	int status = -1;
	if (plug != NULL) {
		tell(w, &r, events + size);
		status = xmlSchemaIsValid(w->context);
		xmlSchemaSAXUnplug(plug); // which clears the context, names included
	}
	// After a valid document a context is as good as new: libxml2 means it to be used
	// again. After anything else, which is rare, it is not relied upon.
	if (status != 1)
		drop_context(w);
	xmlResetLastError();
	return status == 1 ? 0 : status == 0 ? 1 : -1;
}
