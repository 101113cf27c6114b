package binary

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mirador/sir"
)

// To make all units of a program with hundreds of thousands of functions takes a second to a quarter of a minute, most
// of it to translate the symbols of C++ into names, and a gigabyte of memory. A few units of such a program are found
// in its symbols.

// many is the number of functions from which this is worth the effort.
const many = 1 << 16

// mostSearches is the number of searches of all symbols after which an index of all units is made: each takes some
// milliseconds.
const mostSearches = 200

// fewUnits finds a few units of a program with many.
type fewUnits struct {
	im       *Image
	searches atomic.Int32
	made     sync.Map // *sir.Region by the numbers of the functions
	last     atomic.Pointer[matches]
}

var _ sir.Units = (*fewUnits)(nil)

// Base implements sir.Units.
func (x *fewUnits) Base() string { return strings.TrimSuffix(x.im.ids().base, ":") }

// Weaving implements sir.Units.
func (x *fewUnits) Weaving() string { return x.im.marked().Weaving }

// ByID implements sir.Units.
func (x *fewUnits) ByID(id string) *sir.Region {
	if r := x.im.marks().ByID(id); r != nil {
		return r
	}
	own, ok := strings.CutPrefix(id, x.im.ids().base)
	if !ok {
		return nil
	}
	if i := x.im.ids().find(own); i >= 0 {
		return x.unit(i)
	}
	return nil
}

func (x *fewUnits) unit(i int) *sir.Region {
	if r, ok := x.made.Load(i); ok {
		return r.(*sir.Region)
	}
	u := x.im.unit(i)
	r, _ := x.made.LoadOrStore(i, &u)
	return r.(*sir.Region)
}

// ByName implements sir.Units.
func (x *fewUnits) ByName(name string) (found []*sir.Region) {
	word := wordOf(name)
	if !x.maySearch(word) {
		return x.im.index().ByName(name)
	}
	for _, i := range x.with(word) {
		if r := x.unit(i); r.Name == name || r.Symbol == name {
			found = append(found, r)
		}
	}
	return append(found, x.im.marks().ByName(name)...)
}

// Resembling implements sir.Units.
func (x *fewUnits) Resembling(name string) iter.Seq[*sir.Region] {
	word := wordOf(name)
	if !x.maySearch(word) {
		return x.im.index().Resembling(name)
	}
	return func(yield func(*sir.Region) bool) {
		for _, i := range x.with(word) {
			if !yield(x.unit(i)) {
				return
			}
		}
		for r := range x.im.marks().All() {
			if !yield(r) {
				return
			}
		}
	}
}

// All implements sir.Units.
func (x *fewUnits) All() iter.Seq[*sir.Region] { return x.im.index().All() }

// matches are the functions whose symbols contain a word.
type matches struct {
	word  string
	units []int
}

// with returns the functions whose symbols contain a word. Searches for the same word follow each other.
func (x *fewUnits) with(word string) []int {
	if last := x.last.Load(); last != nil && last.word == word {
		return last.units
	}
	found := &matches{word: word}
	for i := range x.im.funcs {
		if f := &x.im.funcs[i]; strings.Contains(f.name, word) && f.isUnit() {
			found.units = append(found.units, i)
		}
	}
	x.last.Store(found)
	return found.units
}

// maySearch reports whether all symbols shall be searched for a word.
func (x *fewUnits) maySearch(word string) bool {
	return word != "" && x.searches.Add(1) <= mostSearches
}

var (
	lastWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*$`)
	// abbreviated are words of names in C++ for which symbols have abbreviations, or which are in no symbol.
	abbreviated = []string{"allocator", "basic_string", "string", "basic_istream", "istream", "basic_ostream", "ostream", "basic_iostream", "iostream", "decltype", "std"}
)

// wordOf returns a word that is in the symbol of each function whose name in the source contains a name, "" if none
// is known: the last one before parameters.
func wordOf(name string) string {
	head := name
	if i := strings.IndexAny(name, "(<"); i >= 0 {
		head = name[:i]
	}
	word := lastWord.FindString(head)
	if strings.Contains(head, "operator") || slices.Contains(abbreviated, word) {
		return ""
	}
	return word
}
