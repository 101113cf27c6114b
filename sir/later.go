package sir

import (
	"bufio"
	"bytes"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// The regions inside all functions of a large program take several times the memory of the document, and most of the
// time for the collection of garbage. So they are made while the document is written, on all processors.

// Limits for the units whose regions are made before the units before them are written.
const (
	unitsPerBatch = 16
	batchesAhead  = 32 // for each processor
)

// batch is a sequence of units, and how they are written.
type batch struct {
	units []Region
	text  *bytes.Buffer
	err   error
	done  chan struct{} // has one value when the text is complete
}

// texts has memory for the texts of batches.
var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// later writes units with the regions that inside sets in copies of them. The first error ends it.
func (e *encoder) later(units []Region, inside func(*Region) error) error {
	if len(units) == 0 {
		return nil
	}
	e.close()
	processors := runtime.GOMAXPROCS(0)
	todo, inOrder := make(chan *batch), make(chan *batch, batchesAhead*processors)
	var workers sync.WaitGroup
	defer workers.Wait()
	var failed atomic.Bool
	for range processors {
		workers.Go(func() {
			own := encoder{w: bufio.NewWriterSize(nil, 16<<10), depth: e.depth}
			for b := range todo {
				if !failed.Load() {
					b.err = own.batch(b, inside)
				}
				b.done <- struct{}{}
			}
		})
	}
	workers.Go(func() {
		defer close(inOrder)
		defer close(todo)
		for units := range slices.Chunk(units, unitsPerBatch) {
			if failed.Load() {
				return
			}
			b := &batch{units: units, done: make(chan struct{}, 1)}
			inOrder <- b
			todo <- b
		}
	})
	var first error
	for b := range inOrder {
		<-b.done
		if first == nil && b.err == nil {
			_, b.err = b.text.WriteTo(e.w)
			texts.Put(b.text)
		}
		if first == nil && b.err != nil {
			first = b.err
			failed.Store(true)
		}
	}
	return first
}

// batch writes units to the text of a batch.
func (e *encoder) batch(b *batch, inside func(*Region) error) error {
	b.text = texts.Get().(*bytes.Buffer)
	b.text.Reset()
	e.w.Reset(b.text)
	for _, r := range b.units {
		if err := inside(&r); err != nil {
			return err
		}
		e.unit(&r)
	}
	return e.w.Flush()
}
