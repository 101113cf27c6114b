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

// keep copies a message. It drops the middle of a long message, which is a value of the
// document; the beginning and the end have the information.
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

// reader reads the encoded events.
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

// text_or_null reads a text and returns NULL for an empty one, as libxml2 expects.
static const xmlChar *text_or_null(reader *r)
{
	const xmlChar *name = text(r);
	return *name == 0 ? NULL : name;
}

static void start_element(reader *r)
{
	// libxml2 takes five pointers for each attribute: name, prefix, namespace, and the
	// beginning and end of its value. The number of attributes is one byte.
	const xmlChar *namespaces[2 * 255], *attributes[5 * 255];
	const xmlChar *name = text(r), *uri = text_or_null(r);
	int bound = (unsigned char) *r->at++, own = (unsigned char) *r->at++;
	for (int i = 0; i < bound; i++) {
		namespaces[2 * i] = text_or_null(r);
		namespaces[2 * i + 1] = text(r); // empty for xmlns="", never NULL
	}
	for (int i = 0; i < own; i++) {
		attributes[5 * i] = text(r);
		attributes[5 * i + 1] = NULL;
		attributes[5 * i + 2] = text_or_null(r);
		attributes[5 * i + 3] = text(r);
		attributes[5 * i + 4] = (const xmlChar *) r->at - 1;
	}
	r->sax->startElementNs(r->context, name, NULL, uri, bound, namespaces, own, 0, attributes);
}

static void replay(watch *w, reader *r, const char *end)
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
			const xmlChar *name = text(r), *uri = text_or_null(r);
			r->sax->endElementNs(r->context, name, NULL, uri);
			break;
		}
		}
	}
}

// ready creates the context of a watch if it has none. A watch is for one schema.
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
		replay(w, &r, events + size);
		status = xmlSchemaIsValid(w->context);
		xmlSchemaSAXUnplug(plug); // this clears the context, including names
	}
	// libxml2 supports using a context again, and does so reliably after a valid document.
	// After anything else, which is rare, create a new one.
	if (status != 1)
		drop_context(w);
	xmlResetLastError();
	return status == 1 ? 0 : status == 0 ? 1 : -1;
}
