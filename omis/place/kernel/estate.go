//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mirador/omis"
	"mirador/omis/place/kernel/pins"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// Book remembers what stands in the kernel, beyond the monitor's death: see
// probes/journal.
type Book interface {
	Keys(prefix string) []string
	Get(key string, value any) (bool, error)
	Put(key string, value any) error
	Delete(key string) error
}

// estate is what a monitor leaves to the next one: objects of the kernel in a folder,
// and records of what is in them. The record of a link is written before the link is
// pinned, and goes before it: a link without a record is nobody's.
type estate struct {
	folder  *pins.Folder
	book    Book
	uprobes *registrar.Client
}

// version changes with what programs, rows and spots look like: a monitor takes over
// what those of the same version have left.
const version = 4

// headRecord is what all objects have in common.
type headRecord struct {
	Shape string `json:"shape"`
}

func (l *layout) shape() string { return fmt.Sprintf("%d %+v", version, *l) }

// targetRecord is a process; its key is the unit that says whether it is gone.
type targetRecord struct {
	Proc omis.ProcID `json:"proc"`
}

// storeRecord is a store; its key is its unit.
type storeRecord struct {
	Key    string            `json:"key"`
	Target unit              `json:"target"`
	Kind   program.StoreKind `json:"kind"`
}

// pageRecord are rows of a store whose room was given to others.
type pageRecord struct {
	Store unit    `json:"store"`
	Rows  []image `json:"rows"`
	// All tells that what the store's former pages tell is in this one.
	All bool `json:"all,omitempty"`
	// Buckets are those of rows with histograms.
	Buckets []program.Distribution `json:"buckets,omitempty"`
}

// bunchRecord is a bunch; its key is its serial number. What its spots are told is in
// the slab.
type bunchRecord struct {
	Target  unit                `json:"target"`
	Steps   []program.Operation `json:"steps"`
	CPU     []bool              `json:"cpu"`
	Kinds   []program.StoreKind `json:"kinds"`
	Loads   []program.Load      `json:"loads,omitempty"`
	Threads int                 `json:"threads"`
	Path    string              `json:"path"`
	After   uint32              `json:"after,omitempty"` // the bunch it takes over from
	Members []memberRecord      `json:"members"`
}

type memberRecord struct {
	Spot   unit   `json:"spot"`
	File   string `json:"file"`
	Offset uint64 `json:"offset"`
	Code   []byte `json:"code"`
}

// Keys of records.
const (
	allRecords   = "kernel/"
	headKey      = "kernel/head"
	targetPrefix = "kernel/target/"
	storePrefix  = "kernel/store/"
	pagePrefix   = "kernel/page/"
	bunchPrefix  = "kernel/bunch/"
	changePrefix = "kernel/change/"
)

// Names of objects. Those of pools have the kind of store behind them, those of links
// their serial numbers.
const (
	slabName    = "slab"
	runningName = "running"
	execName    = "exec"
	indexName   = "index"
	deepName    = "deep"
	chunksName  = "chunks"
	chunkName   = "chunk" // with a second number
	ringName    = "ring"
	linkName    = "link"
)

func keyOf[N ~int | ~uint32](prefix string, n N) string { return prefix + strconv.Itoa(int(n)) }

func nameOf(name string, numbers ...int) string {
	for _, n := range numbers {
		name += fmt.Sprintf("-%d", n)
	}
	return name
}

// each reads the records of a kind, in the order of their numbers.
func each[R any](e *estate, prefix string, do func(n int, r R) error) error {
	byNumber := make(map[int]R)
	last := 0
	for _, key := range e.book.Keys(prefix) {
		var r R
		n, err := strconv.Atoi(strings.TrimPrefix(key, prefix))
		if err == nil {
			_, err = e.book.Get(key, &r)
		}
		if err != nil {
			return err
		}
		byNumber[n], last = r, max(last, n)
	}
	for n := range last + 1 {
		if r, ok := byNumber[n]; ok {
			if err := do(n, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove lets go of an object.
func (e *estate) remove(name string) error { return e.folder.Remove(name, e.uprobes.TakeOut) }

// wipe removes everything.
func (e *estate) wipe() error {
	errs := []error{e.folder.Clear(e.uprobes.TakeOut)}
	for _, key := range e.book.Keys(allRecords) {
		errs = append(errs, e.book.Delete(key))
	}
	return errors.Join(errs...)
}
