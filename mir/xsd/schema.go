// Package xsd validates scanned documents against an XML schema with libxml2. Only this part
// of mir needs cgo; the commands that run a gateway import it and pass a Schema to
// mir.Decoder.
//
// lestrrat-go/libxml2 parses the schemas, but not the documents: the scanner has already
// parsed them, and Validate passes them to libxml2's validator element by element. So no byte
// from a client reaches a parser in C, there are no two parsers that could disagree, every
// error refers to an element, and a validation takes half the time. The Validate of
// lestrrat-go is not usable either: its error collector reads past its buffer if a message is
// longer than 1,023 bytes, and messages repeat parts of the document.
//
// The number of collectors limits the validations that run at once; a validation waits for a
// free collector. So many requests do not create many threads.
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

// Schema is a parsed schema. It may be used by many goroutines at once, because the C library
// does not modify it.
type Schema struct {
	whole  *libxml.Schema
	strict *libxml.Schema  // see strict; tried first
	free   chan *collector // collectors that are not in use
}

// collector has the memory that one validation needs: the state in C for each of the two
// schemas, and a buffer for the encoded document.
type collector struct {
	whole, strict *C.watch
	buffer        events
}

// keepBuffer limits the size of the buffer that a collector keeps after a long document.
const keepBuffer = 1 << 16

var _ mir.Validator = (*Schema)(nil)

// start initializes libxml2. That must happen once, before several threads use it.
var start = sync.OnceFunc(func() { C.watch_init() })

// New parses a schema. The schema must not refer to other files, because validation must not
// access the network.
func New(source []byte) (*Schema, error) {
	if len(source) == 0 {
		return nil, errors.New("cannot parse the schema: it is empty")
	}
	start()
	// Two per processor: one that validates, and one that waits for a thread.
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

// parse installs the collector as libxml2's error handler. libxml2 keeps the handler per OS
// thread, so the goroutine stays on its thread until the handler is removed.
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

// Close frees the schema. No validation may be running or follow.
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

// Validate checks a document against the schema. Errors about the document have type
// *mir.Error and the position of the element or attribute.
//
// Each validation is one call into C per schema, because libxml2 keeps state per OS thread,
// which the call clears. Documents that the strict schema accepts need no second call. For
// other documents, the whole schema decides, and provides the errors.
func (s *Schema) Validate(tree *mir.Tree) error {
	c := <-s.free
	defer func() { s.free <- c }()
	buffer, err := eventsOf(tree, c.buffer[:0])
	if err != nil {
		return err
	}
	if cap(buffer) <= keepBuffer {
		c.buffer = buffer
	}
	if validate(c.strict, s.strict, buffer) == 0 {
		return nil
	}
	status := validate(c.whole, s.whole, buffer)
	if status == 0 {
		return nil
	}
	if status < 0 || c.whole.count == 0 {
		return fmt.Errorf("cannot validate the document: libxml2 failed with status %d", status)
	}
	return invalid(c.whole, tree)
}

// validate calls watch_validate and returns its status.
func validate(watch *C.watch, schema *libxml.Schema, buffer events) int {
	return int(C.watch_validate(watch, C.uintptr_t(schema.Pointer()),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(buffer))), C.int(len(buffer))))
}

// invalid converts the faults of a validation to an error.
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
