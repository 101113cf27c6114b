// Flatten copies the interesting nodes of a syntax tree into an array, in one call: a call from Go for
// each property of each node takes longer than parsing.

#include <stdint.h>
#include <stdlib.h>

// piece is a node. Those inside it follow it; size is their number and one.
typedef struct {
	uint16_t symbol, field;
	uint32_t flags;
	uint32_t start, end, size;
} piece;

enum { PIECE_ERROR = 1, PIECE_MISSING = 2, PIECE_DEEP = 4 };

typedef struct {
	piece *list;
	uint32_t count, room;
	int cut; // the limit of pieces was reached, or there is no memory
} pieces;

// use_malloc makes the library allocate memory without calls to Go. It must be called before parsers are
// made. The binding's own functions call malloc too, so that blocks may be freed by either.
void use_malloc(void);

// flatten visits the tree below root. symbols and fields say of which symbols and of which fields nodes
// are copied: 0 no, 1 yes, 2 yes, without what is inside. What is inside others is visited in any case.
void flatten(void *root, const uint8_t *symbols, uint32_t symbol_count, const uint8_t *fields, uint32_t field_count,
	uint32_t most_depth, uint32_t most_pieces, pieces *out);
