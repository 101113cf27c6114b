#include <stdbool.h>
#include <string.h>

#include "flatten.h"

// Declarations of the library that package go-tree-sitter links, as in its tree_sitter/api.h. They are
// weak because the linker meets them in another package.
#define LINKED __attribute__((weak)) extern

typedef struct {
	uint32_t context[4];
	const void *id, *tree;
} TSNode;

typedef struct {
	const void *tree, *id;
	uint32_t context[3];
} TSTreeCursor;

LINKED TSTreeCursor ts_tree_cursor_new(TSNode);
LINKED void ts_tree_cursor_delete(TSTreeCursor *);
LINKED TSNode ts_tree_cursor_current_node(const TSTreeCursor *);
LINKED uint16_t ts_tree_cursor_current_field_id(const TSTreeCursor *);
LINKED bool ts_tree_cursor_goto_parent(TSTreeCursor *);
LINKED bool ts_tree_cursor_goto_next_sibling(TSTreeCursor *);
LINKED bool ts_tree_cursor_goto_first_child(TSTreeCursor *);
LINKED uint16_t ts_node_symbol(TSNode);
LINKED uint32_t ts_node_start_byte(TSNode);
LINKED uint32_t ts_node_end_byte(TSNode);
LINKED bool ts_node_is_missing(TSNode);
LINKED void ts_set_allocator(void *(*)(size_t), void *(*)(size_t, size_t), void *(*)(void *, size_t), void (*)(void *));

void use_malloc(void)
{
	ts_set_allocator(malloc, calloc, realloc, free);
}

static const uint16_t error_symbol = 0xffff;

static piece *add(pieces *out, uint32_t most)
{
	if (out->count == out->room) {
		uint32_t room = out->room ? out->room * 2 : 1024;
		piece *list = room > most ? NULL : realloc(out->list, room * sizeof *list);
		if (!list) {
			out->cut = 1;
			return NULL;
		}
		out->list = list;
		out->room = room;
	}
	return &out->list[out->count++];
}

void flatten(void *root, const uint8_t *symbols, uint32_t symbol_count, const uint8_t *fields, uint32_t field_count,
	uint32_t most_depth, uint32_t most_pieces, pieces *out)
{
	TSNode node;
	uint32_t *open = malloc((most_depth + 1) * sizeof *open); // the pieces around, by depth; 0: none
	uint32_t depth = 0;
	memcpy(&node, root, sizeof node);
	if (!open) {
		out->cut = 1;
		return;
	}
	TSTreeCursor at = ts_tree_cursor_new(node);
	for (;;) {
		node = ts_tree_cursor_current_node(&at);
		uint16_t symbol = ts_node_symbol(node), field = 0;
		uint8_t want = symbol < symbol_count ? symbols[symbol] : symbol == error_symbol;
		bool missing = ts_node_is_missing(node);
		if (!want) {
			field = ts_tree_cursor_current_field_id(&at);
			want = missing || (field < field_count && fields[field]);
		} else
			field = ts_tree_cursor_current_field_id(&at);
		open[depth] = 0;
		if (want) {
			piece *p = add(out, most_pieces);
			if (!p)
				break;
			p->symbol = symbol;
			p->field = field;
			p->flags = (symbol == error_symbol ? PIECE_ERROR : 0) | (missing ? PIECE_MISSING : 0);
			p->start = ts_node_start_byte(node);
			p->end = ts_node_end_byte(node);
			p->size = 1;
			open[depth] = out->count;
		}
		if (want != 2 && depth < most_depth && ts_tree_cursor_goto_first_child(&at)) {
			depth++;
			continue;
		}
		for (uint32_t d = depth; depth == most_depth && d; d--)
			if (open[d]) { // the piece that contains what is too deep
				out->list[open[d] - 1].flags |= PIECE_DEEP;
				break;
			}
		while (!ts_tree_cursor_goto_next_sibling(&at)) {
			if (!depth || !ts_tree_cursor_goto_parent(&at))
				goto done;
			depth--;
			if (open[depth])
				out->list[open[depth] - 1].size = out->count - (open[depth] - 1);
		}
	}
done:
	// Where the limit ends the visit, the pieces around have all that follows.
	for (uint32_t d = 0; out->cut && d <= depth; d++)
		if (open[d])
			out->list[open[d] - 1].size = out->count - (open[d] - 1);
	ts_tree_cursor_delete(&at);
	free(open);
}
