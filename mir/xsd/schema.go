// Package xsd validates scanned documents against an XML schema by libxml2. It
// is the only part of mir that needs cgo; the commands that run a gateway
// import it and hand a Schema to mir.Decoder.
//
// Schemas are parsed by lestrrat-go/libxml2. Documents are not: the scan has read
// them already, and tells them to libxml2's validator element by element. So
// no byte that a stranger wrote reaches a parser in C, there are no two parsers
// to disagree, every error knows its element, and a validation costs half.
// lestrrat's own Validate is no choice either: its collector of errors reads
// past its buffer when a message is longer than 1,023 bytes, and messages
// repeat what the document says.
//
// There are as many collectors as validations may run at once, and a
// validation waits for a free one, so that a crowd of requests does not become
// a crowd of threads.
package xsd

/*
#cgo pkg-config: libxml-2.0
#include "watch.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	libxml "github.com/lestrrat-go/libxml2/xsd"

	"mirador/mir"
)

// Schema is a parsed schema. It may be used by many goroutines at once; the C
// library reads it without changing it.
type Schema struct {
	whole  *libxml.Schema
	strict *libxml.Schema  // see strict; it is asked first
	free   chan *collector // those nobody uses
}

// collector is what one validation at a time needs: the side in C for each of
// the two schemas, and the memory that documents are written to for them.
type collector struct {
	whole, strict *C.watch
	told          events
}

// keepTold bounds what a collector keeps after a long document.
const keepTold = 1 << 16

var _ mir.Validator = (*Schema)(nil)

// start makes libxml2 ready, which must happen once and before there are
// threads to race.
var start = sync.OnceFunc(func() { C.watch_init() })

// New parses a schema, which must not refer to other files: nothing here may
// reach for the network.
func New(source []byte) (*Schema, error) {
	if len(source) == 0 {
		return nil, errors.New("cannot parse the schema: it is empty")
	}
	start()
	// Two for each processor: one that validates, one that waits for its thread.
	s := &Schema{free: make(chan *collector, 2*runtime.GOMAXPROCS(0))}
	for range cap(s.free) {
		c := &collector{whole: C.watch_new(), strict: C.watch_new()}
		s.free <- c
		if c.whole == nil || c.strict == nil {
			s.Close()
			return nil, errors.New("cannot prepare the schema: out of memory")
		}
	}
	var err error
	if s.whole, err = s.parse(source); err == nil {
		s.strict, err = s.parse(strict(source))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// parse has the collector as libxml2's handler of errors, which it keeps for
// each OS thread: the goroutine stays on its thread until the handler is gone.
func (s *Schema) parse(source []byte) (*libxml.Schema, error) {
	c := <-s.free
	defer func() { s.free <- c }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.watch_begin(c.whole)
	defer C.watch_end()
	schema, err := libxml.Parse(source)
	if c.whole.count > 0 {
		if err == nil {
			schema.Free()
		}
		first := &c.whole.faults[0]
		return nil, fmt.Errorf("cannot parse the schema: line %d: %s", first.line, plain(C.GoString(&first.message[0])))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse the schema: %w", err)
	}
	return schema, nil
}

// Close frees the schema. No validation may be running, and none may follow.
func (s *Schema) Close() {
	close(s.free)
	for c := range s.free {
		C.watch_free(c.whole)
		C.watch_free(c.strict)
	}
	for _, schema := range []*libxml.Schema{s.whole, s.strict} {
		if schema != nil {
			schema.Free()
		}
	}
}

// Validate holds a document against the schema. Errors about the document are
// of type *mir.Error, with the position of the element or attribute meant.
//
// Each validation is a single call into C: what libxml2 keeps for each OS thread
// is used and cleared within it. What the strict schema takes needs no second one;
// of anything else the whole schema decides, and says what is wrong.
func (s *Schema) Validate(tree *mir.Tree) error {
	c := <-s.free
	defer func() { s.free <- c }()
	told, err := eventsOf(tree, c.told[:0])
	if err != nil {
		return err
	}
	if cap(told) <= keepTold {
		c.told = told
	}
	if validate(c.strict, s.strict, told) == 0 {
		return nil
	}
	status := validate(c.whole, s.whole, told)
	if status == 0 {
		return nil
	}
	if status < 0 || c.whole.count == 0 {
		return fmt.Errorf("cannot validate the document: libxml2 failed with status %d", status)
	}
	return invalid(c.whole, tree)
}

// validate answers what watch_validate does.
func validate(watch *C.watch, schema *libxml.Schema, told events) int {
	return int(C.watch_validate(watch, C.uintptr_t(schema.Pointer()),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(told))), C.int(len(told))))
}

// invalid words what the validation found.
func invalid(watch *C.watch, tree *mir.Tree) *mir.Error {
	var faults []mir.Fault
	for i := range watch.count {
		found := &watch.faults[i]
		message := C.GoString(&found.message[0])
		element := meant(tree.At(int(found.element)), message)
		faults = append(faults, complaint{element, int(found.code), message}.faults()...)
	}
	return mir.NewInvalid(faults)
}
