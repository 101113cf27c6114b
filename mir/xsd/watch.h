#ifndef MIR_XSD_WATCH_H
#define MIR_XSD_WATCH_H

#include <stdint.h>

// How much is kept of what libxml2 says about one document. Its messages repeat
// values of the document, so both bounds matter.
#define WATCH_FAULTS 16
#define WATCH_MESSAGE 512

typedef struct {
	int code;    // an xmlParserErrors
	int line;    // of a schema; a document's fault has the element instead
	int element; // which one, counting start tags from 0
	char message[WATCH_MESSAGE];
} watch_fault;

typedef struct {
	int count;
	int element; // the one that is being told
	struct _xmlSchemaValidCtxt *context; // kept for the next document, or NULL
	watch_fault faults[WATCH_FAULTS];
} watch;

void watch_init(void);
watch *watch_new(void);
void watch_free(watch *w);

// Between begin and end, what libxml2 says on this thread goes to the watch.
void watch_begin(watch *w);
void watch_end(void);

// watch_validate tells a document to the validator, event by event. It answers
// 0 for a valid document, 1 for an invalid one, -1 if libxml2 failed. A watch
// takes one schema all its life, and is to be freed before it.
//
// Events are a letter and its texts, each text ended by a NUL:
//   S name uri  number-of-namespaces number-of-attributes (a byte each)
//               {prefix uri}... {name uri value}...
//   T text
//   E which element is closed (4 bytes, this machine's order)  name uri
int watch_validate(watch *w, uintptr_t schema, const char *events, int size);

#endif
