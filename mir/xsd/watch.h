#ifndef MIR_XSD_WATCH_H
#define MIR_XSD_WATCH_H

#include <stdint.h>

// Limits for the messages of libxml2 about one document. Messages repeat values of the
// document, so both limits matter.
#define WATCH_FAULTS 16
#define WATCH_MESSAGE 512

typedef struct {
	int code;    // an xmlParserErrors
	int line; // line of a schema; faults of documents have element instead
	int element; // index of the element's start tag, from 0
	char message[WATCH_MESSAGE];
} watch_fault;

typedef struct {
	int count;
	int element; // index of the current element
	struct _xmlSchemaValidCtxt *context; // kept for the next document, or NULL
	watch_fault faults[WATCH_FAULTS];
} watch;

void watch_init(void);
watch *watch_new(void);
void watch_free(watch *w);

// Between watch_begin and watch_end, libxml2's errors on this thread go to the watch.
void watch_begin(watch *w);
void watch_end(void);

// watch_validate passes a document to the validator, event by event. It returns 0 for a valid
// document, 1 for an invalid one, and -1 if libxml2 failed. A watch must be used with one
// schema only, and must be freed before the schema.
//
// An event is a letter followed by texts, each terminated by a NUL:
//   S name uri  number-of-namespaces number-of-attributes (a byte each)
//               {prefix uri}... {name uri value}...
//   T text
//   E index of the closed element (4 bytes, native byte order)  name uri
int watch_validate(watch *w, uintptr_t schema, const char *events, int size);

#endif
