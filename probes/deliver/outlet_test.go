package deliver

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mirador/mir"
)

func document(id string) *mir.Measurement { return &mir.Measurement{ProbeID: id} }

// taken is a Destination that lists the ids of its documents.
type taken struct {
	ids    []string
	closed int
}

func (d *taken) Send(m mir.Document) { d.ids = append(d.ids, m.(*mir.Measurement).ProbeID) }
func (d *taken) Commit()             {}
func (d *taken) Close()              { d.closed++ }

// read returns the waiting documents of a stream with the losses before them, the id of the
// last event, and whether the stream is open.
func read(events <-chan Event) (ids []string, last uint64, open bool) {
	for {
		select {
		case e, more := <-events:
			if !more {
				return ids, last, false
			}
			id := e.Document.(*mir.Measurement).ProbeID
			if e.Lost != 0 {
				id = fmt.Sprintf("%s after %d", id, e.Lost)
			}
			ids, last = append(ids, id), e.ID
		default:
			return ids, last, true
		}
	}
}

func listen(t *testing.T, o *Outlet, after uint64) (<-chan Event, func()) {
	t.Helper()
	events, cancel, ok := o.Listen(after)
	if !ok {
		t.Fatal("the outlet is closed")
	}
	return events, cancel
}

func TestSendReachesAll(t *testing.T) {
	var o Outlet
	d := &taken{}
	if !o.Empty() || !o.Add(d) || o.Empty() {
		t.Fatal("the destination was not added")
	}
	events, cancel := listen(t, &o, 0)
	Send(Parcel{&o, document("a")})
	o.Remove(d)
	o.Remove(d)
	Send(Parcel{&o, document("b")})
	if !slices.Equal(d.ids, []string{"a"}) || d.closed != 1 {
		t.Errorf("the removed destination has %q and was closed %d times", d.ids, d.closed)
	}
	if ids, _, open := read(events); !slices.Equal(ids, []string{"a", "b"}) || !open {
		t.Errorf("the stream has %q, open %t", ids, open)
	}
	cancel()
	cancel()
	if _, _, open := read(events); open {
		t.Error("cancel left the stream open")
	}
}

// TestSlowReaderLearnsOfItsLoss checks that a slow reader gets the oldest documents, and then
// a document with the number of missed documents.
func TestSlowReaderLearnsOfItsLoss(t *testing.T) {
	var o Outlet
	events, _ := listen(t, &o, 0)
	for range backlog + 3 {
		Send(Parcel{&o, document("old")})
	}
	if ids, _, _ := read(events); len(ids) != backlog || ids[backlog-1] != "old" {
		t.Errorf("%d documents, the last of them %q", len(ids), ids[len(ids)-1])
	}
	Send(Parcel{&o, document("new")})
	if ids, _, _ := read(events); !slices.Equal(ids, []string{"new after 3"}) {
		t.Errorf("the stream has %q", ids)
	}
}

// TestReaderComesBack checks that a reader whose connection broke misses nothing for a while.
func TestReaderComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Outlet
		events, cancel := listen(t, &o, 0)
		Send(Parcel{&o, document("a")})
		Send(Parcel{&o, document("b")})
		_, had, _ := read(events)
		cancel()
		time.Sleep(linger - time.Second)
		if o.Empty() {
			t.Fatal("nothing is measured for a reader that may come back")
		}
		Send(Parcel{&o, document("c")})
		Send(Parcel{&o, document("d")})
		events, cancel = listen(t, &o, had)
		Send(Parcel{&o, document("e")})
		ids, had, _ := read(events)
		if !slices.Equal(ids, []string{"c", "d", "e"}) {
			t.Errorf("the stream has %q", ids)
		}
		cancel()
		for range backlog + 2 {
			Send(Parcel{&o, document("f")})
		}
		events, cancel = listen(t, &o, had)
		if ids, _, _ := read(events); len(ids) != backlog || ids[0] != "f after 2" || ids[1] != "f" {
			t.Errorf("%d documents, the first of them %q", len(ids), ids[0])
		}
		cancel()
		time.Sleep(linger)
		if !o.Empty() {
			t.Error("something is measured for a reader that does not come back")
		}
		Send(Parcel{&o, document("g")})
		events, _ = listen(t, &o, 17) // an event of a former gateway
		Send(Parcel{&o, document("h")})
		if ids, _, _ := read(events); !slices.Equal(ids, []string{"h after -1"}) {
			t.Errorf("the stream has %q", ids)
		}
	})
}

func TestEndAndClose(t *testing.T) {
	var o Outlet
	first, _ := listen(t, &o, 0)
	d := &taken{}
	o.Add(d)
	o.End()
	if _, _, open := read(first); open || d.closed != 1 {
		t.Error("End left a stream or a destination open")
	}
	second, cancel := listen(t, &o, 0)
	o.Close()
	cancel() // must not close it again
	if _, _, open := read(second); open {
		t.Error("Close left a stream open")
	}
	if _, _, ok := o.Listen(0); ok || o.Add(&taken{}) {
		t.Error("something was added after Close")
	}
}
