package safedwarf

import (
	"bytes"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"fmt"
)

var errTable = errors.New("damaged table of functions")

// GoFunctions returns the functions of a .gopclntab, read by debug/gosym. It checks the table before,
// because debug/gosym allocates as many functions as the table claims, and copies the name of each: a
// table of a hundred bytes could take all memory.
func GoFunctions(table []byte, text uint64) (list []gosym.Func, err error) {
	defer func() {
		if p := recover(); p != nil {
			list, err = nil, fmt.Errorf("%w: %v", errTable, p)
		}
	}()
	if err := checkTable(table); err != nil {
		return nil, err
	}
	known, err := gosym.NewTable(nil, gosym.NewLineTable(table, text))
	if err != nil {
		return nil, err
	}
	return known.Funcs, nil
}

// checkTable returns an error if the table claims too many functions or too long names. It panics if the
// table is damaged.
func checkTable(table []byte) error {
	const header, pointer, least = 8, 8, 8 // sizes: the fixed header, a word, an entry for a function
	le := binary.LittleEndian
	word := func(i int) uint64 { return le.Uint64(table[header+pointer*i:]) }
	if table[header-1] != pointer || word(0) > uint64(len(table)/least) {
		return errTable
	}
	// The parts are at other places in each version of the format: Go 1.2, 1.16, 1.18, 1.20.
	names, functions, entry := table, table[header+pointer:], uint64(8)
	data := table
	switch le.Uint32(table) {
	case 0xfffffff0, 0xfffffff1:
		names, functions, entry = table[word(3):], table[word(7):], 4
		data = functions
	case 0xfffffffa:
		names, functions = table[word(2):], table[word(6):]
		data = functions
	case 0xfffffffb:
	default:
		return errTable
	}
	left := 8*len(table) + 16<<20
	for i := range word(0) {
		offset := functions[(2*i+1)*entry:]
		at := uint64(le.Uint32(offset))
		if entry == 8 {
			at = le.Uint64(offset)
		}
		if left -= bytes.IndexByte(names[le.Uint32(data[at+entry:]):], 0); left < 0 {
			return errors.New("the names of functions overlap too much")
		}
	}
	return nil
}
