//go:build linux && amd64

package persist

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/link"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/node"
	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

// Journal keeps values by key beyond the death of the monitor: see probes/journal.
type Journal interface {
	Keys(prefix string) []string
	Get(key string, value any) (bool, error)
	Put(key string, value any) error
	Delete(key string) error
}

// State is what a monitor leaves for the next one: pinned kernel objects in a folder, and
// records of what they contain in a journal. The record of a link is written before the link is
// pinned, and deleted before the link is removed, so a link without a record is an orphan.
type State struct {
	Folder  *Folder
	Journal Journal
	Close   func(link.Link) error // closes the last reference to a link
}

// version changes with the format of programs, rows and spots. A monitor adopts only state of
// its own version.
const version = 7

// Head says what all objects and records have in common.
type Head struct {
	Shape string `json:"shape"`
}

// HeadOf is the head of state that programs with a layout write.
func HeadOf(l *code.Layout) Head { return Head{fmt.Sprintf("%d %+v", version, *l)} }

// Target is the record of a process. Its number is the unit that says whether the process
// executes another program.
type Target struct {
	Proc omis.ProcID `json:"proc"`
}

// Store is the record of a store. Its number is the store's unit.
type Store struct {
	Key    string            `json:"key"`
	Target code.Unit         `json:"target"`
	Kind   program.StoreKind `json:"kind"`
}

// Page is the record of rows of ended threads, whose space in the pool other threads use now.
type Page struct {
	Store code.Unit    `json:"store"`
	Rows  []code.Image `json:"rows"`
	// All reports that this page replaces all earlier pages of the store.
	All bool `json:"all,omitempty"`
	// Buckets are the histograms of the rows, if they have any.
	Buckets []program.Distribution `json:"buckets,omitempty"`
}

// Bunch is the record of a bunch of uprobes. Its number is the serial number of the link. The
// parameters of the addresses are in the slab.
type Bunch struct {
	Target  code.Unit           `json:"target"`
	Steps   []program.Operation `json:"steps"`
	Clocks  []program.Clock     `json:"clocks"`
	Kinds   []program.StoreKind `json:"kinds"`
	Sources []program.StoreKind `json:"sources,omitempty"`
	Loads   []program.Load      `json:"loads,omitempty"`
	Threads int                 `json:"threads"`
	When    node.Condition      `json:"when,omitempty"`
	Path    string              `json:"path"`
	After   uint32              `json:"after,omitempty"` // serial number of the bunch that this one replaces
	Members []Member            `json:"members"`
}

// Member is one uprobe of a bunch.
type Member struct {
	Spot   code.Unit `json:"spot"`
	File   string    `json:"file"`
	Offset uint64    `json:"offset"`
	Code   []byte    `json:"code"`
}

// Change is the record of uprobes that are being set or removed. Its number is the serial number
// of their link.
type Change struct {
	Proc    omis.ProcID `json:"proc"`
	Members []uint64    `json:"members"` // addresses
}

// Watched is the record of a process whose kernel events are observed. Its number is its index in
// the table that programs read.
type Watched struct {
	Proc omis.ProcID `json:"proc"`
}

// Listener is the record of a program at an event of the kernel. Its number is the unit that says
// whether the program is active.
type Listener struct {
	Watched uint16           `json:"watched"`
	Kind    node.EventKind   `json:"kind"`
	Number  int              `json:"number"`
	Steps   []ListenerStep   `json:"steps"`
	Only    []ListenerThread `json:"only,omitempty"`
	File    calls.FileKind   `json:"file,omitempty"`
}

// ListenerStep is one operation of a Listener.
type ListenerStep struct {
	Do    program.Operation `json:"do"`
	Value int64             `json:"value,omitempty"`
	Load  program.Load      `json:"load,omitzero"`
	Clock program.Clock     `json:"clock,omitempty"`
	OneIn int64             `json:"oneIn,omitempty"`
	Whole bool              `json:"whole,omitempty"`
	Store code.Unit         `json:"store"`

	Source code.Unit `json:"source,omitempty"`
}

// ListenerThread is a thread that a Listener is limited to.
type ListenerThread struct {
	TID   int    `json:"tid"`
	Ticks uint64 `json:"ticks"`
}

// Kind is the prefix of the keys of one kind of record; the record's number follows.
type Kind string

// Kinds of records.
const (
	Targets   Kind = "kernel/target/"
	Stores    Kind = "kernel/store/"
	Pages     Kind = "kernel/page/"
	Bunches   Kind = "kernel/bunch/"
	Changes   Kind = "kernel/change/"
	Processes Kind = "kernel/watched/"
	Listeners Kind = "kernel/listener/"
)

// Keys of single records.
const (
	AllRecords = "kernel/" // the prefix of every key
	HeadKey    = "kernel/head"
	EventsKey  = "kernel/events" // true when all tables of events have been pinned
	// RegistrarKey is the record of the process that sets uprobes for the monitor.
	RegistrarKey = "registrar"
)

// Names of pinned objects. The comments say which numbers follow the name (see Name), or which name.
const (
	Slab    = "slab"
	Running = "running"
	Exec    = "exec"
	Index   = "index"  // the kind of row
	Deep    = "deep"   // the kind of row
	Chunks  = "chunks" // the kind of row
	Chunk   = "chunk"  // the kind of row, the number of the chunk
	Ring    = "ring"   // the kind of row
	Link    = "link"   // the serial number
	table   = "table-" // a table of events, by its own name
	hook    = "hook-"  // an attachment to a tracepoint, by its own name
)

// Name is the name of an object with numbers.
func Name(name string, numbers ...int) string {
	for _, n := range numbers {
		name += fmt.Sprintf("-%d", n)
	}
	return name
}

// Table is the name of a table of events.
func Table(name string) string { return table + name }

// Hook is the name of an attachment to a tracepoint.
func Hook(name string) string { return hook + name }

// IsOfEvents reports whether an object is a table of events or an attachment to a tracepoint.
func IsOfEvents(name string) bool {
	return strings.HasPrefix(name, table) || strings.HasPrefix(name, hook)
}

func keyOf[N ~uint16 | ~uint32](kind Kind, n N) string {
	return string(kind) + strconv.FormatUint(uint64(n), 10)
}

// Put writes a record.
func Put[N ~uint16 | ~uint32](s *State, kind Kind, n N, record any) error {
	return s.Journal.Put(keyOf(kind, n), record)
}

// Delete deletes a record.
func Delete[N ~uint16 | ~uint32](s *State, kind Kind, n N) error {
	return s.Journal.Delete(keyOf(kind, n))
}

// Each reads the records of a kind in the order of their numbers.
func Each[R any](s *State, kind Kind, do func(n uint32, r R) error) error {
	records := make(map[uint32]R)
	var order []uint32
	for _, key := range s.Journal.Keys(string(kind)) {
		var r R
		n, err := strconv.ParseUint(strings.TrimPrefix(key, string(kind)), 10, 32)
		if err == nil {
			_, err = s.Journal.Get(key, &r)
		}
		if err != nil {
			return err
		}
		records[uint32(n)], order = r, append(order, uint32(n))
	}
	slices.Sort(order)
	for _, n := range order {
		if err := do(n, records[n]); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a pinned object.
func (s *State) Remove(name string) error { return s.Folder.Remove(name, s.Close) }

// DropEvents removes all tables, attachments and records of events.
func (s *State) DropEvents() error {
	var errs []error
	for _, name := range s.Folder.Names() {
		if IsOfEvents(name) {
			errs = append(errs, s.Remove(name))
		}
	}
	for _, kind := range []Kind{Processes, Listeners} {
		errs = append(errs, s.deleteAll(string(kind)))
	}
	return errors.Join(errs...)
}

// Wipe removes all objects and records.
func (s *State) Wipe() error {
	return errors.Join(s.Folder.Clear(s.Close), s.deleteAll(AllRecords))
}

func (s *State) deleteAll(prefix string) error {
	var errs []error
	for _, key := range s.Journal.Keys(prefix) {
		errs = append(errs, s.Journal.Delete(key))
	}
	return errors.Join(errs...)
}
