package grammar

// #include "flatten.h"
import "C"

import (
	"context"
	"errors"
	"sync"
	"unsafe"

	treesitter "github.com/tree-sitter/go-tree-sitter"
)

// Limits of a syntax tree.
const (
	mostDepth  = 1500
	mostPieces = 1 << 22
)

// piece is a node of a syntax tree. Those inside it follow it in the list; size is their number and one.
type piece struct {
	symbol, field    uint16
	flags            uint32
	start, end, size uint32
}

const (
	pieceError   = C.PIECE_ERROR
	pieceMissing = C.PIECE_MISSING
	pieceDeep    = C.PIECE_DEEP
)

// useMalloc halves the time of parsing: the binding allocates each block by a call to Go.
var useMalloc = sync.OnceFunc(func() { C.use_malloc() })

var errTooLarge = errors.New("the file has more syntax than is read")

// parse returns the interesting pieces of a text. It returns those that fit with errTooLarge.
func (l *language) parse(ctx context.Context, text []byte) ([]piece, error) {
	useMalloc()
	parser := treesitter.NewParser()
	defer parser.Close()
	if err := parser.SetLanguage(l.grammar); err != nil {
		return nil, err
	}
	// The parser gets the text in one piece: with errors it goes back often.
	tree := parser.ParseWithOptions(func(at int, _ treesitter.Point) []byte {
		return text[min(at, len(text)):]
	}, nil, &treesitter.ParseOptions{ProgressCallback: func(treesitter.ParseState) bool { return ctx.Err() != nil }})
	if tree == nil {
		return nil, errors.Join(ctx.Err(), errors.New("the parser gave up"))
	}
	defer tree.Close()
	var out C.pieces
	root := tree.RootNode() // its only field is the node of the library
	C.flatten(unsafe.Pointer(root), (*C.uint8_t)(&l.symbols[0]), C.uint32_t(len(l.symbols)), (*C.uint8_t)(&l.fields[0]), C.uint32_t(len(l.fields)),
		mostDepth, mostPieces, &out)
	defer C.free(unsafe.Pointer(out.list))
	list := make([]piece, out.count)
	copy(list, unsafe.Slice((*piece)(unsafe.Pointer(out.list)), int(out.count)))
	if out.cut != 0 {
		return list, errTooLarge
	}
	return list, nil
}
